{{/*
What things are called. Everything below begins with this name; 40 characters leave room for what follows it. A longer name ends with a digest:
two that begin alike stay different.
*/}}
{{- define "prober.fullname" -}}
{{- $name := .Values.fullnameOverride -}}
{{- if not $name -}}
{{- $name = ternary .Release.Name (printf "%s-%s" .Release.Name (include "prober.name" .)) (contains (include "prober.name" .) .Release.Name) -}}
{{- end -}}
{{- $name = replace "." "-" $name -}}
{{- if gt (len $name) 40 -}}
{{- $name = printf "%s-%s" (trunc 31 $name | trimSuffix "-") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- trimSuffix "-" $name -}}
{{- end }}

{{- define "prober.name" -}}
{{- default .Chart.Name .Values.nameOverride -}}
{{- end }}

{{/* By which Services, policies and budgets find the pods of a component. Argument: (list $ component). */}}
{{- define "prober.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "prober.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The labels of everything. Argument: (list $ component), or (list $ component labels) with those that the user wants for this kind. */}}
{{- define "prober.labels" -}}
{{- $root := index . 0 -}}
{{ include "prober.selector" . }}
app.kubernetes.io/part-of: {{ $root.Chart.Name }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with include "prober.ownLabels" (list $root (rest (rest .) | first)) }}
{{ . }}
{{- end }}
{{- end }}

{{/* The user's labels: those of one kind of thing win over those of everything. Argument: (list $ labels). */}}
{{- define "prober.ownLabels" -}}
{{- with merge (dict) (index . 1 | default dict) ((index . 0).Values.commonLabels | default dict) }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* The annotations of an object. Argument: (list $ annotations): those of one kind win over those of everything. */}}
{{- define "prober.annotations" -}}
{{- with merge (dict) (index . 1 | default dict) (index . 0).Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The service account of a component. Argument: (list $ component). */}}
{{- define "prober.serviceAccount" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $account := index $root.Values.serviceAccounts $component -}}
{{- default (ternary (printf "%s-%s" (include "prober.fullname" $root) $component) "default" $account.create) $account.name -}}
{{- end }}

{{/* An image reference; an image without a registry has that of `image`. Argument: (list $ image defaultTag). */}}
{{- define "prober.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- with ($root.Values.global | default dict).imageRegistry | default $image.registry | default $root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{ $image.repository }}:{{ default (index . 2) $image.tag }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end }}

{{/* The image of the jobs: with the connector for Cloud Storage if the history is there. */}}
{{- define "prober.jobsImage" -}}
{{- $suffix := ternary "jobs-gcs" "jobs" (hasPrefix "gs://" .Values.history.location) -}}
{{- include "prober.image" (list . .Values.jobs.image (printf "%s-%s" .Chart.AppVersion $suffix)) -}}
{{- end }}

{{/* The Service that people and programs ask: of the API where it has its own pods, else of the prober. */}}
{{- define "prober.front" -}}
{{- ternary "api" "prober" .Values.api.enabled -}}
{{- end }}

{{/* The components that this installation has, as JSON. */}}
{{- define "prober.components" -}}
{{- $found := list "prober" -}}
{{- if .Values.api.enabled }}{{ $found = append $found "api" }}{{ end -}}
{{- if ne .Values.jobs.mode "none" }}{{ $found = append $found "jobs" }}{{ end -}}
{{- toJson $found -}}
{{- end }}
