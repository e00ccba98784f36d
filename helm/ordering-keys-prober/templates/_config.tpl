{{/* The configuration file: what the user wrote, and the settings of the chart merged into it. */}}
{{- define "prober.config" -}}
{{- $own := dict "api" (dict "host" "0.0.0.0" "port" 8080) -}}
{{- with .Values.links.runbooks -}}
{{- $_ := set (get $own "api") "runbooks" (trimSuffix "/" .) -}}
{{- end -}}
{{- if not .Values.status.existingSecret.name -}}
{{- $_ := set $own "status" (dict "url" "sqlite:////var/lib/ordering-prober/status.db") -}}
{{- end -}}
{{- if eq (include "prober.hasHistory" .) "true" -}}
{{- $history := dict "location" (include "prober.history" .) "spool" "/var/lib/ordering-prober/spool" -}}
{{- if or (ne .Values.jobs.mode "none") .Values.history.reports -}}
{{- $_ := set $history "reports" (include "prober.reports" .) -}}
{{- end -}}
{{- $_ := set $own "history" $history -}}
{{- end -}}
{{- if gt (int .Values.prober.replicas) 1 -}}
{{- $_ := set $own "sharding" (dict "group" (include "prober.group" .)) -}}
{{- end -}}
{{- if eq (include "prober.hasDrills" .) "true" -}}
{{- $_ := set $own "drills" (dict "host" "0.0.0.0" "port" 9096) -}}
{{- end -}}
{{- if eq (include "prober.hasPush" .) "true" -}}
{{- $_ := set $own "push" (dict "host" "0.0.0.0" "port" 8081) -}}
{{- end -}}
{{- mustMergeOverwrite (deepCopy .Values.config) $own | toYaml -}}
{{- end }}

{{/*
Who shares the work: the probers of this release. Releases of one name in two namespaces may use one PostgreSQL, so the namespace is part of it; the
digest keeps apart those whose names joined by a hyphen are equal.
*/}}
{{- define "prober.group" -}}
{{- $name := include "prober.fullname" . -}}
{{- $digest := printf "%s/%s" .Release.Namespace $name | sha256sum | trunc 8 -}}
{{- printf "%s-%s" (printf "%s-%s" .Release.Namespace $name | trunc 54 | trimSuffix "-") $digest -}}
{{- end }}

{{/* Whether fire drills are on a schedule. */}}
{{- define "prober.hasDrills" -}}
{{- if (.Values.config.drills | default dict).cron }}true{{ end -}}
{{- end }}

{{/* Whether Pub/Sub pushes to the probers. */}}
{{- define "prober.hasPush" -}}
{{- if (.Values.config.push | default dict).address }}true{{ end -}}
{{- end }}

{{- define "prober.hasHistory" -}}
{{- if or .Values.history.location (eq (include "prober.hasVolume" .) "true") }}true{{ end -}}
{{- end }}

{{- define "prober.hasVolume" -}}
{{- if or .Values.history.volume.existingClaim .Values.history.volume.size }}true{{ end -}}
{{- end }}

{{- define "prober.history" -}}
{{- .Values.history.location | default "/history/events" -}}
{{- end }}

{{- define "prober.reports" -}}
{{- .Values.history.reports | default "/history/reports" -}}
{{- end }}

{{/* A location as Spark reads it: without the options that pyarrow takes, and S3 by Hadoop's name for it. */}}
{{- define "prober.forSpark" -}}
{{- regexReplaceAll "\\?.*$" . "" | replace "s3://" "s3a://" -}}
{{- end }}
