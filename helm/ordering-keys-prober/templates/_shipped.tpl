{{/*
The files of alerts/ and dashboards/ as they are in this release. They are written once, for everybody; here they get the addresses of this
installation, and are limited to the series of this release, so that two releases neither page twice nor replace each other's dashboards.
*/}}

{{/* What the uids of this release's dashboards begin with. It depends on the namespace too: one Grafana often serves several. */}}
{{- define "prober.uidPrefix" -}}
{{- .Values.dashboards.uidPrefix | default (printf "okp-%s" (printf "%s/%s" .Release.Namespace (include "prober.fullname" .) | sha256sum | trunc 8)) -}}
{{- end }}

{{/* Where alerts and dashboards find the runbooks: by default at the service, which has them. */}}
{{- define "prober.runbooks" -}}
{{- .Values.links.runbooks | default (printf "%s/runbooks" (trimSuffix "/" .Values.links.pages)) | trimSuffix "/" -}}
{{- end }}

{{/* The text of a rule file, before anything is put in. Argument: (list $ subject). */}}
{{- define "prober.rulesText" -}}
{{- $root := index . 0 -}}
{{- $subject := index . 1 -}}
{{- $own := ternary $root.Values.rules.objectives "" (eq $subject "objectives") -}}
{{- $own | default ($root.Files.Get (printf "alerts/%s.rules.yaml" $subject)) -}}
{{- end }}

{{/* What of config.slos the rules about objectives were made from, as JSON; empty if they do not say. */}}
{{- define "prober.rulesMadeFrom" -}}
{{- include "prober.rulesText" (list . "objectives") | regexFind "(?m)^# slos: .*$" | trimPrefix "# slos: " -}}
{{- end }}

{{/* The groups of a rule file. Argument: (list $ subject). */}}
{{- define "prober.rules" -}}
{{- $root := index . 0 -}}
{{- $links := $root.Values.links -}}
{{- $job := include "prober.job" $root -}}
{{- $text := include "prober.rulesText" . -}}
{{- $text = replace "http://localhost:3000" (trimSuffix "/" $links.dashboards) $text -}}
{{- $text = replace "the job ordering-keys-prober" (printf "the job %s" $job) $text -}}
{{- $text = replace "/d/okp-" (printf "/d/%s-" (include "prober.uidPrefix" $root)) $text -}}
{{- $text = replace "http://localhost:8080/runbooks" (include "prober.runbooks" $root) $text -}}
{{- $text = replace "http://localhost:8080" (trimSuffix "/" $links.pages) $text -}}
{{- $document := fromYaml $text -}}
{{- range $group := $document.groups -}}
{{- range $rule := $group.rules -}}
{{- $_ := set $rule "expr" (include "prober.ownSeries" (list $job $rule.expr)) -}}
{{- if hasKey $rule "record" -}}
{{- $_ := set $rule "labels" (merge (dict "job" $job) ($rule.labels | default dict)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $document -}}
{{- end }}

{{/* An expression that looks at this release's series only: scraped ones, and those that its own rules recorded. Argument: (list job expression). */}}
{{- define "prober.ownSeries" -}}
{{- $job := index . 0 -}}
{{- $matcher := printf "job=~\"%s(-api)?\"" $job -}}
{{- $series := "((?:[a-z]+:)?pubsub_prober_[a-z0-9_]+(?::[a-z0-9_]+)?)" -}}
{{- $expr := regexReplaceAll "job(=~?)\"ordering-keys-prober" (index . 1) (printf "job${1}\"%s" $job) -}}
{{- $expr = regexReplaceAll (print $series "\\{") $expr (printf "${1}{%s, " $matcher) -}}
{{- regexReplaceAll (print $series "([^a-z0-9_:{]|$)") $expr (printf "${1}{%s}${2}" $matcher) -}}
{{- end }}

{{/* A dashboard. Argument: (list $ path). */}}
{{- define "prober.dashboard" -}}
{{- $root := index . 0 -}}
{{- $links := $root.Values.links -}}
{{- $text := $root.Files.Get (index . 1) -}}
{{- $text = replace "okp-" (printf "%s-" (include "prober.uidPrefix" $root)) $text -}}
{{- $text = replace "${VAR_STATUS_PAGE}" (trimSuffix "/" $links.pages) $text -}}
{{- $text = replace "${VAR_RUNBOOKS}" (include "prober.runbooks" $root) $text -}}
{{- $board := omit (fromJson $text) "__inputs" -}}
{{- $prefix := include "prober.uidPrefix" $root -}}
{{- $_ := set $board "tags" (append $board.tags $prefix) -}}
{{- range $link := $board.links -}}
{{- if eq $link.type "dashboards" -}}
{{- $_ := set $link "tags" (list $prefix) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $board "title" (printf "%s (%s, %s)" $board.title (include "prober.fullname" $root) $root.Release.Namespace) -}}
{{- $job := include "prober.job" $root -}}
{{- range $variable := $board.templating.list -}}
{{- if eq $variable.name "job" -}}
{{- $_ := set $variable "current" (dict "selected" true "text" (list $job) "value" (list $job)) -}}
{{- end -}}
{{- end -}}
{{- toPrettyJson $board -}}
{{- end }}
