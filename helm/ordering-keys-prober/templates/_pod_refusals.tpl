{{/* What is wrong with names and labels, as a list in JSON. */}}
{{- define "prober.nameRefusals" -}}
{{- $root := . -}}
{{- $wrong := list -}}
{{- if gt (len (.Values.fullnameOverride | default "")) 40 -}}
{{- $wrong = append $wrong (printf "fullnameOverride has %d characters: 40 is the most, since Kubernetes and the chart put more behind it" (len .Values.fullnameOverride)) -}}
{{- end -}}
{{- if regexMatch "^[0-9]" (include "prober.fullname" .) -}}
{{- $wrong = append $wrong (printf "the release %s begins with a digit, and names of Services must not: set fullnameOverride" .Release.Name) -}}
{{- end -}}
{{- $labelled := dict "commonLabels" .Values.commonLabels "serviceMonitor.labels" .Values.serviceMonitor.labels "podMonitor.labels" .Values.podMonitor.labels "rules.labels" .Values.rules.labels "dashboards.labels" .Values.dashboards.labels -}}
{{- range $component := list "prober" "api" "jobs" }}{{ $_ := set $labelled (printf "%s.podLabels" $component) (index $root.Values $component).podLabels }}{{ end -}}
{{- range $where, $labels := $labelled -}}
{{- range $label, $_ := $labels -}}
{{- if regexMatch "^(app\\.kubernetes\\.io/(name|instance|component|part-of|version|managed-by)|helm\\.sh/chart)$" $label -}}
{{- $wrong = append $wrong (printf "%s has %s, which the chart sets: Services and policies find pods by such labels" $where $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $wrong | toJson -}}
{{- end }}

{{/* What is wrong with what the user adds to pods, as a list in JSON: variables, containers and volumes that are the chart's own, images without a version. */}}
{{- define "prober.podRefusals" -}}
{{- $root := . -}}
{{- $wrong := list -}}
{{- range $where, $image := dict "image" .Values.image "jobs.image" .Values.jobs.image -}}
{{- if and (eq ($image.tag | default "") "latest") (not $image.digest) -}}
{{- $wrong = append $wrong (printf "%s.tag is latest, which is another image every day: name a version, or a digest" $where) -}}
{{- end -}}
{{- end -}}
{{- range $component := list "prober" "api" "jobs" -}}
{{- $settings := index $root.Values $component -}}
{{- range $variable := $settings.extraEnv -}}
{{- range $path, $instead := include "prober.ownKeys" $root | fromYaml -}}
{{- if regexMatch (printf "^ORDERING_PROBER_%s(__.*)?$" ($path | replace "." "__" | upper)) $variable.name -}}
{{- $wrong = append $wrong (printf "%s.extraEnv has %s, which must go: %s" $component $variable.name $instead) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $container := concat ($settings.extraContainers | default list) ($settings.extraInitContainers | default list) -}}
{{- if has $container.name (list "prober" "api" "nightly" "objectives" "store") -}}
{{- $wrong = append $wrong (printf "%s has an extra container called %s, as one of the chart's own: give it another name" $component $container.name) -}}
{{- end -}}
{{- if hasSuffix ":latest" $container.image -}}
{{- $wrong = append $wrong (printf "%s has an extra container with the image %s, which is another one every day: name a version" $component $container.image) -}}
{{- end -}}
{{- end -}}
{{- range $volume := $settings.extraVolumes -}}
{{- if has $volume.name (list "config" "data" "google" "history" "kube-api" "objectives" "spark" "tmp") -}}
{{- $wrong = append $wrong (printf "%s.extraVolumes has %s, as one of the chart's own: give it another name" $component $volume.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $wrong | toJson -}}
{{- end }}
