{{/* What is wrong with how it is deployed, as a list in JSON. */}}
{{- define "prober.deploymentRefusals" -}}
{{- $root := . -}}
{{- $wrong := list -}}
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled -}}
{{- $wrong = append $wrong "serviceMonitor.enabled and podMonitor.enabled are both true, so every series would come twice: choose one" -}}
{{- end -}}
{{- if and .Values.healthCheckPolicy.enabled (not .Values.httpRoute.enabled) -}}
{{- $wrong = append $wrong "healthCheckPolicy.enabled needs httpRoute.enabled: it is for the load balancer of a Gateway" -}}
{{- end -}}
{{- if and (or .Values.push.ingress.enabled .Values.push.httpRoute.enabled) (ne (include "prober.hasPush" .) "true") -}}
{{- $wrong = append $wrong "push.ingress and push.httpRoute lead to nothing without config.push.address: set it to the https URL by which Pub/Sub calls the probers" -}}
{{- end -}}
{{- $wrong = concat $wrong (include "prober.identityRefusals" . | fromJsonArray) -}}
{{- range $component := list "prober" "api" "jobs" -}}
{{- range $variable := (index $root.Values $component).extraEnv -}}
{{- if and $root.Values.networkPolicy.enabled (regexMatch "^ORDERING_PROBER_(TARGETS__.*|DRILLS__(PROMETHEUS|ALERTMANAGER))$" $variable.name) -}}
{{- $wrong = append $wrong (printf "%s.extraEnv sets %s, which the network policy cannot follow: write it into config" $component $variable.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $resources := .Values.jobs.resources -}}
{{- if and (eq .Values.jobs.mode "cronjob") (not (hasKey $resources.requests "cpu")) (not (hasKey $resources.limits "cpu")) -}}
{{- $wrong = append $wrong "jobs.resources has no cpu: write requests.cpu or limits.cpu, by which Spark knows how many cores it may use" -}}
{{- end -}}
{{- if and .Values.rules.enabled .Values.rules.alerts -}}
{{- $known := include "prober.alertNames" . | fromJsonArray -}}
{{- range $name, $_ := .Values.rules.alerts -}}
{{- if not (has $name $known) -}}
{{- $wrong = append $wrong (printf "rules.alerts.%s: there is no alert of that name; docs/alerts.md lists them" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $wrong = concat $wrong (include "prober.nameRefusals" . | fromJsonArray) (include "prober.podRefusals" . | fromJsonArray) -}}
{{- with include "prober.volumeRefusal" . }}{{ $wrong = append $wrong . }}{{ end -}}
{{- $wrong | toJson -}}
{{- end }}

{{- define "prober.identityRefusals" -}}
{{- $wrong := list -}}
{{- $federation := .Values.workloadIdentityFederation.provider -}}
{{- $values := .Values -}}
{{- range $component := list "prober" "api" "jobs" -}}
{{- $account := index $values.serviceAccounts $component -}}
{{- if and $federation $account.keySecret.name -}}
{{- $wrong = append $wrong (printf "serviceAccounts.%s.keySecret and workloadIdentityFederation.provider are both set: federation needs no key" $component) -}}
{{- end -}}
{{- if and $account.impersonate (not $federation) -}}
{{- $wrong = append $wrong (printf "serviceAccounts.%s.impersonate needs workloadIdentityFederation.provider; on GKE use the annotation iam.gke.io/gcp-service-account" $component) -}}
{{- end -}}
{{- if or $federation $account.keySecret.name -}}
{{- range $variable := (index $values $component).extraEnv -}}
{{- if eq $variable.name "GOOGLE_APPLICATION_CREDENTIALS" -}}
{{- $wrong = append $wrong (printf "%s.extraEnv sets GOOGLE_APPLICATION_CREDENTIALS, and so does the chart: remove one of the two" $component) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $wrong | toJson -}}
{{- end }}

{{/*
Kubernetes never changes the volumes of a StatefulSet that exists; it would refuse the upgrade without a word on the way out. Only known where Helm
asks the cluster (install, upgrade, --dry-run=server), not where somebody else applies what it renders.
*/}}
{{- define "prober.volumeRefusal" -}}
{{- $name := include "prober.fullname" . -}}
{{- $there := lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- if $there -}}
{{- $settings := .Values.prober.persistence -}}
{{- $asked := list -}}
{{- if $settings.enabled }}{{ $asked = list $settings.size $settings.storageClassName }}{{ end -}}
{{- $has := list -}}
{{- range $template := $there.spec.volumeClaimTemplates -}}
{{- $has = list $template.spec.resources.requests.storage ($template.spec.storageClassName | default "") -}}
{{- end -}}
{{- if ne (include "prober.volumeInBytes" $has) (include "prober.volumeInBytes" $asked) -}}
{{- printf "prober.persistence asks for %s, and the StatefulSet %s has %s, which Kubernetes does not change. Keep what it has, or do what docs/deploy.md says under `Other volumes`; its last step before this upgrade is: kubectl --namespace %s delete statefulset %s --cascade=orphan" (include "prober.volumeInWords" $asked) $name (include "prober.volumeInWords" $has) .Release.Namespace $name -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A volume, (list size class), or an empty list for none. */}}
{{- define "prober.volumeInWords" -}}
{{- if . -}}
{{ index . 0 }} of {{ with index . 1 }}class {{ . }}{{ else }}the default class{{ end }}
{{- else -}}
no volume
{{- end -}}
{{- end }}

{{/* The same for 4Gi and 4096Mi. */}}
{{- define "prober.volumeInBytes" -}}
{{- if . -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $size := toString (index . 0) -}}
{{- $number := regexFind "^[0-9]+" $size -}}
{{- printf "%d %s" (mul (int64 $number) (index $units (trimPrefix $number $size))) (index . 1) -}}
{{- end -}}
{{- end }}
