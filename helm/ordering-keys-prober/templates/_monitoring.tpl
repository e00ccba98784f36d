{{/* How one endpoint is scraped by Prometheus. Argument: (list $ job). */}}
{{- define "prober.scrape" -}}
{{- $scrape := (index . 0).Values.scrape -}}
path: /metrics
interval: {{ $scrape.interval }}
scrapeTimeout: {{ $scrape.timeout }}
relabelings:
  - targetLabel: job
    replacement: {{ index . 1 }}
{{- with $scrape.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "prober.scrapeLimits" -}}
sampleLimit: {{ .Values.scrape.sampleLimit }}
labelLimit: 40
{{- end }}

{{/* A file of alerts/ or dashboards/ with this installation's addresses in it. Argument: (list $ text). */}}
{{- define "prober.addressed" -}}
{{- $links := (index . 0).Values.links -}}
{{- $text := index . 1 -}}
{{- with $links.dashboards }}{{ $text = replace "http://localhost:3000" (trimSuffix "/" .) $text }}{{ end -}}
{{- with $links.pages }}{{ $text = replace "http://localhost:8080" (trimSuffix "/" .) $text }}{{ end -}}
{{- with $links.runbooks }}{{ $text = replace "runbook_url: docs/runbooks" (printf "runbook_url: %s" (trimSuffix "/" .)) $text }}{{ end -}}
{{- $text -}}
{{- end }}
