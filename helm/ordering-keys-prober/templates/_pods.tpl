{{/* What every pod has in common: nothing of the cluster's own is passed to it, and it may do nothing that it need not do. */}}
{{- define "prober.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- include "prober.podSecurityContext" . | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Whatever is given, no pod is root. Without a user here (`null`) the image's own, or the one that OpenShift gives to the namespace. */}}
{{- define "prober.podSecurityContext" -}}
{{- set (deepCopy .Values.podSecurityContext) "runAsNonRoot" true | toYaml -}}
{{- end }}

{{/* The restricted profile; the user may add to it, such as seLinuxOptions, and take nothing away. */}}
{{- define "prober.containerSecurityContext" -}}
{{- $restricted := dict "allowPrivilegeEscalation" false "privileged" false "readOnlyRootFilesystem" true "runAsNonRoot" true -}}
{{- $_ := set $restricted "capabilities" (dict "drop" (list "ALL")) -}}
{{- mustMergeOverwrite (dict "seccompProfile" (dict "type" "RuntimeDefault")) .Values.containerSecurityContext $restricted | toYaml -}}
{{- end }}

{{/* The fields of a dictionary that are not empty, as the user wrote them, each on a line of its own. */}}
{{- define "prober.given" -}}
{{- range $key, $value := . }}
{{- if $value }}
{{ dict $key $value | toYaml }}
{{- end }}
{{- end }}
{{- end }}

{{/* What the scheduler and the kubelet are asked for, as the user wrote it. Argument: (list $ component settings). */}}
{{- define "prober.placement" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- with index . 2 -}}
{{- pick . "priorityClassName" "nodeSelector" "tolerations" "hostAliases" "dnsConfig" "runtimeClassName" "schedulerName" | include "prober.given" }}
{{- if .affinity }}
affinity:
  {{- toYaml .affinity | nindent 2 }}
{{- else if and (ne $component "prober") (eq (include "prober.hasVolume" $root) "true") (eq $root.Values.history.volume.accessMode "ReadWriteOnce") }}
affinity:
  podAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "prober.selector" (list $root "prober") | nindent 12 }}
{{- end }}
{{- if .topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml .topologySpreadConstraints | nindent 2 }}
{{- else if hasKey . "topologySpreadConstraints" }}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "prober.selector" (list $root $component) | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The labels of a pod: without versions, so that a new chart alone replaces no pod. Argument: (list $ component settings). */}}
{{- define "prober.podLabels" -}}
{{- $root := index . 0 -}}
{{ include "prober.selector" . }}
app.kubernetes.io/part-of: {{ $root.Chart.Name }}
{{- with include "prober.ownLabels" (list $root (index . 2).podLabels) }}
{{ . }}
{{- end }}
{{- end }}

{{/*
What a pod is annotated with: another configuration makes other pods, but for what a running process takes over from the mounted file
(prober/config/following.py). Argument: (list $ component settings).
*/}}
{{- define "prober.podAnnotations" -}}
checksum/config: {{ omit (include "prober.config" (index . 0) | fromYaml) "targets" "probes" "slos" "maintenance" "budget" "comparisons" | toYaml | sha256sum }}
{{- if eq (include "prober.googleIdentity" .) "federation" }}
checksum/google: {{ include "prober.federationFile" . | sha256sum }}
{{- end }}
{{- with (index . 2).podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The environment of the prober and the API. Secrets come by reference only. Argument: (list $ component settings). */}}
{{- define "prober.env" -}}
{{- $root := index . 0 -}}
- name: ORDERING_PROBER_INSTANCE
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- with $root.Values.status.existingSecret }}
{{- if .name }}
- name: ORDERING_PROBER_STATUS__URL
  valueFrom:
    secretKeyRef:
      name: {{ .name }}
      key: {{ .key }}
{{- end }}
{{- end }}
{{- with $root.Values.api.existingSecret }}
{{- if .name }}
- name: ORDERING_PROBER_API__TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .name }}
      key: {{ .key }}
{{- end }}
{{- end }}
{{- include "prober.commonEnv" . }}
{{- end }}

{{/* What the environment of every component ends with: who it is for Google Cloud, and what the user adds. Argument: (list $ component settings). */}}
{{- define "prober.commonEnv" -}}
{{- include "prober.googleEnv" . }}
{{- with (index . 2).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Containers of the user's own, locked as ours are unless they say otherwise. Argument: (list $ containers). */}}
{{- define "prober.extraContainers" -}}
{{- $root := index . 0 -}}
{{- range $container := index . 1 }}
{{- $context := include "prober.containerSecurityContext" $root | fromYaml -}}
{{- range $key, $value := $container.securityContext }}{{ $_ := set $context $key $value }}{{ end }}
- {{ set (deepCopy $container) "securityContext" $context | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}

{{/* Started, alive, ready, on the port that serves everything. Argument: the settings of a component, whose periods and thresholds win. */}}
{{- define "prober.probes" -}}
{{- $startup := dict "httpGet" (dict "path" "/healthz" "port" "http") "periodSeconds" 2 "timeoutSeconds" 2 "failureThreshold" 60 -}}
{{- $liveness := dict "httpGet" (dict "path" "/healthz" "port" "http") "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 6 -}}
{{- $readiness := dict "httpGet" (dict "path" "/readyz" "port" "http") "periodSeconds" 5 "timeoutSeconds" 5 "failureThreshold" 3 -}}
startupProbe: {{ mustMergeOverwrite $startup .startupProbe | toJson }}
livenessProbe: {{ mustMergeOverwrite $liveness .livenessProbe | toJson }}
readinessProbe: {{ mustMergeOverwrite $readiness .readinessProbe | toJson }}
{{- end }}

{{/* The volumes that prober, API and jobs share. Argument: (list $ component settings). */}}
{{- define "prober.sharedMounts" -}}
{{- $root := index . 0 -}}
- name: config
  mountPath: /etc/ordering-prober
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- if eq (include "prober.hasVolume" $root) "true" }}
- name: history
  mountPath: /history
{{- end }}
{{- include "prober.googleMount" . }}
{{- with (index . 2).extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Argument: (list $ component settings sizeOfTmp). */}}
{{- define "prober.sharedVolumes" -}}
{{- $root := index . 0 -}}
- name: config
  configMap:
    name: {{ include "prober.fullname" $root }}
- name: tmp
  emptyDir:
    sizeLimit: {{ index . 3 }}
{{- if eq (include "prober.hasVolume" $root) "true" }}
- name: history
  persistentVolumeClaim:
    claimName: {{ default (printf "%s-history" (include "prober.fullname" $root)) $root.Values.history.volume.existingClaim }}
{{- end }}
{{- include "prober.googleVolume" . }}
{{- with (index . 2).extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
