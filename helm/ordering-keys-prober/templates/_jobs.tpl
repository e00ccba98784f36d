{{/* What the nightly jobs are asked, after the program. */}}
{{- define "prober.jobArguments" -}}
- nightly
- --history
- {{ include "prober.forSpark" (include "prober.history" .) }}
- --reports
- {{ include "prober.forSpark" (include "prober.reports" .) }}
- --objectives
- /objectives/objectives.json
- --exit-zero-on-findings
{{- with (.Values.config.telemetry | default dict).log_format }}
- --log-format
- {{ . }}
{{- end }}
{{- with .Values.jobs.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Writes the objectives of the configuration as the jobs read them. */}}
{{- define "prober.objectivesContainer" -}}
name: objectives
image: {{ include "prober.image" (list . .Values.image .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command:
  - sh
  - -c
  - exec ordering-prober slos --config /etc/ordering-prober/prober.yaml --format json > /objectives/objectives.json
securityContext:
  {{- include "prober.containerSecurityContext" . | nindent 2 }}
resources:
  requests: {cpu: 100m, memory: 256Mi}
  limits: {memory: 256Mi}
volumeMounts:
  - name: config
    mountPath: /etc/ordering-prober
    readOnly: true
  - name: objectives
    mountPath: /objectives
  - name: tmp
    mountPath: /tmp
{{- end }}

{{/* Settings of Spark as a properties file. */}}
{{- define "prober.sparkDefaults" -}}
{{- range $key, $value := .Values.jobs.sparkConf }}
{{ $key }} {{ $value }}
{{- end }}
{{- end }}

{{/*
Settings of Spark under the operator. Each executor gets scratch space of its own: the driver makes a claim for it, and Spark takes a volume of this name
for its local folders. Spark makes a claim only if its class is named.
*/}}
{{- define "prober.operatorConf" -}}
{{- $settings := dict -}}
{{- with .Values.jobs.scratch.storageClassName }}
{{- $volume := "spark.kubernetes.executor.volumes.persistentVolumeClaim.spark-local-dir-1" }}
{{- $claim := dict "options.claimName" "OnDemand" "options.storageClass" $.Values.jobs.scratch.storageClassName "options.sizeLimit" $.Values.jobs.scratch.size "mount.path" "/scratch" "mount.readOnly" "false" }}
{{- range $key, $value := $claim }}{{ $_ := set $settings (printf "%s.%s" $volume $key) $value }}{{ end }}
{{- end }}
{{- merge (dict) .Values.jobs.sparkConf $settings | toYaml }}
{{- end }}

{{/* The operator puts a number of 19 digits after it, and the result into a label, which has 63 characters at most. */}}
{{- define "prober.sparkName" -}}
{{- $name := include "prober.fullname" . -}}
{{- if gt (len $name) 35 -}}
{{- $name = printf "%s-%s" (trunc 26 $name | trimSuffix "-") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{ $name }}-nightly
{{- end }}

{{/* What driver and executors of a Spark application have in common; the operator makes their memory limits of `memory`. */}}
{{- define "prober.sparkPod" -}}
{{- $jobs := .Values.jobs -}}
labels:
  {{- include "prober.podLabels" (list . "jobs" $jobs) | nindent 2 }}
{{- with $jobs.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "prober.commonEnv" (list . "jobs" $jobs) | trim }}
env:
  {{- . | nindent 2 }}
{{- end }}
{{- with include "prober.placement" (list . "jobs" (omit $jobs "hostAliases" "dnsConfig" "runtimeClassName")) | trim }}
{{ . }}
{{- end }}
podSecurityContext:
  {{- include "prober.podSecurityContext" . | nindent 2 }}
securityContext:
  {{- include "prober.containerSecurityContext" . | nindent 2 }}
{{- end }}
