{{/* How one endpoint is scraped by Prometheus. Argument: (list $ job monitor). */}}
{{- define "prober.scrape" -}}
{{- $scrape := (index . 0).Values.scrape -}}
path: /metrics
interval: {{ $scrape.interval }}
scrapeTimeout: {{ $scrape.timeout }}
relabelings:
  - targetLabel: job
    replacement: {{ index . 1 }}
  {{- with $scrape.relabelings }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with (index . 2).tlsConfig }}
scheme: https
tlsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $scrape.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The label `job` of the probers' series; that of the API ends with -api. */}}
{{- define "prober.job" -}}
{{- .Values.scrape.job | default (include "prober.fullname" .) -}}
{{- end }}

{{- define "prober.scrapeLimits" -}}
sampleLimit: {{ .Values.scrape.sampleLimit }}
labelLimit: 40
{{- end }}
