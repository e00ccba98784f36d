{{/* What the schema cannot see: values that contradict each other. All of them are told at once. */}}
{{- define "prober.refuse" -}}
{{- $wrong := list -}}
{{- $config := .Values.config -}}
{{- $jobs := ne .Values.jobs.mode "none" -}}
{{- $volume := eq (include "prober.hasVolume" .) "true" -}}
{{- range $path, $instead := include "prober.ownKeys" . | fromYaml -}}
{{- $parts := splitList "." $path -}}
{{- $section := ternary (get $config (first $parts) | default dict) $config (eq (len $parts) 2) -}}
{{- if hasKey $section (last $parts) -}}
{{- $wrong = append $wrong (printf "config.%s must go: %s" $path $instead) -}}
{{- end -}}
{{- end -}}
{{- if not .Values.status.existingSecret.name -}}
{{- if gt (int .Values.prober.replicas) 1 -}}
{{- $wrong = append $wrong "prober.replicas is more than 1, so status.existingSecret.name must name a Secret with the URL of a PostgreSQL database that they share" -}}
{{- end -}}
{{- if .Values.api.enabled -}}
{{- $wrong = append $wrong "api.enabled needs status.existingSecret.name: the API in pods of its own reads the prober's PostgreSQL database" -}}
{{- end -}}
{{- end -}}
{{- if and (eq (include "prober.hasDrills" .) "true") (gt (int .Values.prober.replicas) 1) -}}
{{- $wrong = append $wrong "config.drills.cron needs prober.replicas 1: several probers would drill at once and get each other's pages; install a release of its own for drills" -}}
{{- end -}}
{{- if and .Values.history.location $volume -}}
{{- $wrong = append $wrong "history.location and history.volume are both set: write one of the two" -}}
{{- end -}}
{{- if and $volume .Values.history.reports -}}
{{- $wrong = append $wrong "history.reports must go: with history.volume the reports are on that volume" -}}
{{- end -}}
{{- if and $volume (eq .Values.history.volume.accessMode "ReadWriteOnce") (gt (int .Values.prober.replicas) 1) -}}
{{- $wrong = append $wrong "history.volume.accessMode is ReadWriteOnce, which serves one node: with more than one prober write ReadWriteMany, or history.location" -}}
{{- end -}}
{{- if and $jobs (not .Values.history.location) (not $volume) -}}
{{- $wrong = append $wrong "jobs.mode needs a history to work on: set history.location or history.volume" -}}
{{- end -}}
{{- if and $jobs .Values.history.location (not .Values.history.reports) -}}
{{- $wrong = append $wrong "jobs.mode needs history.reports: where the reports go" -}}
{{- end -}}
{{- if and (eq .Values.jobs.mode "sparkOperator") (not .Values.jobs.spark.image) -}}
{{- $wrong = append $wrong "jobs.mode sparkOperator needs jobs.spark.image: an image that Spark on Kubernetes can start (see docs/deploy.md)" -}}
{{- end -}}
{{- if and (eq .Values.jobs.mode "sparkOperator") $volume -}}
{{- $wrong = append $wrong "jobs.mode sparkOperator needs history.location: executors do not mount history.volume" -}}
{{- end -}}
{{- with .Values.api.autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- $wrong = append $wrong "api.autoscaling.minReplicas is more than maxReplicas" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.api.autoscaling.enabled (not .Values.api.enabled) -}}
{{- $wrong = append $wrong "api.autoscaling.enabled does nothing without api.enabled" -}}
{{- end -}}
{{- $wrong = concat $wrong (include "prober.deploymentRefusals" . | fromJsonArray) -}}
{{- if $wrong -}}
{{- fail (printf "\n%s: these values cannot be used:\n  - %s\n" .Chart.Name (join "\n  - " $wrong)) -}}
{{- end -}}
{{- end }}

{{/* Keys of the configuration that the chart writes itself, and what to write instead. */}}
{{- define "prober.ownKeys" -}}
instance: each prober is named after its pod
api.host: the chart sets it
api.port: the chart sets it
api.token: no secret belongs into values; name one in api.existingSecret
status.url: no secret belongs into values; name one in status.existingSecret
drills.host: the chart sets it
drills.port: the chart sets it
history.location: write history.location
history.reports: write history.reports
history.spool: the chart sets it
sharding: the chart sets it as soon as prober.replicas is more than 1
{{- end }}
