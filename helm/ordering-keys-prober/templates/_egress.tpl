{{/*
What a component connects to, by its configuration: HOST:PORT each, as JSON. Google's addresses and buckets stand for what is on port 443.
Argument: (list $ component).
*/}}
{{- define "prober.reached" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $config := $root.Values.config -}}
{{- $found := list -}}
{{- if eq $component "prober" -}}
{{- range $target := $config.targets -}}
{{- $found = append $found (include "prober.targetAddress" ($target.endpoint | default "embedded")) -}}
{{- $found = append $found (include "prober.targetAddress" ($target.peer | default "embedded")) -}}
{{- end -}}
{{- range $variable := $root.Values.prober.extraEnv -}}
{{- if eq $variable.name "PUBSUB_EMULATOR_HOST" }}{{ $found = append $found ($variable.value | default "") }}{{ end -}}
{{- end -}}
{{- $monitoring := $config.monitoring | default dict -}}
{{- if or $monitoring.subscriptions $monitoring.discover -}}
{{- $found = append $found (include "prober.monitoringAddress" $monitoring) -}}
{{- end -}}
{{- $drills := $config.drills | default dict -}}
{{- range $url := list $drills.prometheus $drills.alertmanager -}}
{{- with $url }}{{ $found = append $found (include "prober.urlAddress" (list . "")) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if ne $component "api" }}{{ $found = append $found (include "prober.bucketAddress" $root.Values.history.location) }}{{ end -}}
{{- $found = append $found (include "prober.bucketAddress" $root.Values.history.reports) -}}
{{- range $variable := (index $root.Values $component).extraEnv -}}
{{- if and (regexMatch "(?i)^((https?|all|grpc)_proxy|OTEL_EXPORTER_OTLP_((TRACES|METRICS)_)?ENDPOINT)$" $variable.name) $variable.value -}}
{{- $found = append $found (include "prober.urlAddress" (list (ternary $variable.value (print "http://" $variable.value) (contains "://" $variable.value)) "")) -}}
{{- end -}}
{{- end -}}
{{- if eq $component "jobs" -}}
{{- with index $root.Values.jobs.sparkConf "spark.hadoop.fs.s3a.endpoint" -}}
{{- $found = append $found (include "prober.urlAddress" (list . "443")) -}}
{{- end -}}
{{- end -}}
{{- if or (index $root.Values $component).extraInitContainers (index $root.Values $component).extraContainers -}}
{{- $found = append $found "extra-containers:443" -}}
{{- end -}}
{{- if include "prober.googleIdentity" . }}{{ $found = append $found "sts.googleapis.com:443" }}{{ end -}}
{{- without $found "" | uniq | toJson -}}
{{- end }}

{{/* Where a target is, as the program reads `endpoint`. */}}
{{- define "prober.targetAddress" -}}
{{- if regexMatch ":[0-9]+$" . -}}
{{ . }}
{{- else if ne . "embedded" -}}
pubsub.googleapis.com:443
{{- end -}}
{{- end }}

{{/* Where Cloud Monitoring is, as the program reads `monitoring.endpoint`. */}}
{{- define "prober.monitoringAddress" -}}
{{- $endpoint := .endpoint | default "monitoring.googleapis.com" -}}
{{- ternary $endpoint (printf "%s:443" $endpoint) (regexMatch ":[0-9]+$" $endpoint) -}}
{{- end }}

{{/* HOST:PORT of a URL. Argument: (list url port): what holds without a port; empty: by scheme. */}}
{{- define "prober.urlAddress" -}}
{{- $url := urlParse (index . 0) -}}
{{- $host := $url.host | default $url.path -}}
{{- if regexMatch ":[0-9]+$" $host -}}
{{ $host }}
{{- else -}}
{{ $host }}:{{ index . 1 | default (ternary "80" "443" (eq $url.scheme "http")) }}
{{- end -}}
{{- end }}

{{/* Where a bucket is, empty for none. A store that is compatible with S3 has an address of its own. */}}
{{- define "prober.bucketAddress" -}}
{{- $override := regexFind "endpoint_override=[^&]+" . | trimPrefix "endpoint_override=" -}}
{{- if $override -}}
{{- $plain := contains "scheme=http&" (printf "%s&" .) -}}
{{ include "prober.urlAddress" (list (ternary $override (printf "%s://%s" (ternary "http" "https" $plain) $override) (contains "://" $override)) "") }}
{{- else if hasPrefix "gs://" . -}}
storage.googleapis.com:443
{{- else if hasPrefix "s3://" . -}}
s3.amazonaws.com:443
{{- else if hasPrefix "hdfs://" . -}}
{{- $host := (urlParse .).host -}}
{{ ternary $host (printf "%s:8020" $host) (contains ":" $host) }}
{{- end -}}
{{- end }}

{{/* Rules that let a component out. Argument: (list $ component). */}}
{{- define "prober.egress" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $reached := include "prober.reached" . | fromJsonArray -}}
{{- $seen := list -}}
{{- include "prober.dnsEgress" $root }}
{{- range $address := $reached }}
{{- $port := regexFind "[0-9]+$" $address }}
{{- $host := $address | trimSuffix (printf ":%s" $port) | trimAll "[]" }}
{{- $cidr := "" }}
{{- if regexMatch "^[0-9]+(\\.[0-9]+){3}$" $host }}{{ $cidr = printf "%s/32" $host }}{{ else if contains ":" $host }}{{ $cidr = printf "%s/128" $host }}{{ end }}
{{- $rule := printf "%s %s" $cidr $port }}
{{- if not (or (has $rule $seen) (has $host (list "localhost" "127.0.0.1" "::1"))) }}
{{- $seen = append $seen $rule }}
- ports:
    - {protocol: TCP, port: {{ $port }}}
  {{- with $cidr }}
  to:
    - ipBlock: {cidr: {{ . | quote }}}
  {{- end }}
{{- end }}
{{- end }}
{{- if and (include "prober.usesMetadataServer" $root) (regexMatch "googleapis.com:443" (toString $reached)) }}
# The identity of this pod, from the metadata server of a GKE node.
- to:
    - ipBlock: {cidr: 169.254.169.252/32}
    - ipBlock: {cidr: 169.254.169.254/32}
  ports:
    - {protocol: TCP, port: 80}
    - {protocol: TCP, port: 988}
{{- end }}
{{- if and (ne $component "jobs") $root.Values.status.existingSecret.name }}
# The status store.
- ports:
    - {protocol: TCP, port: {{ $root.Values.status.port }}}
{{- end }}
{{- if and (eq $component "jobs") (eq $root.Values.jobs.mode "sparkOperator") }}
# The driver and the executors of Spark talk to each other, and the driver makes executors.
- to:
    - podSelector:
        matchLabels:
          {{- include "prober.selector" (list $root "jobs") | nindent 10 }}
- ports:
    - {protocol: TCP, port: 443}
    - {protocol: TCP, port: 6443}
{{- end }}
{{- with $root.Values.networkPolicy.egress }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "prober.dnsEgress" -}}
- ports:
    {{- range $port := .Values.networkPolicy.dnsPorts }}
    - {protocol: UDP, port: {{ $port }}}
    - {protocol: TCP, port: {{ $port }}}
    {{- end }}
{{- end }}
