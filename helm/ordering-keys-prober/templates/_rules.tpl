{{/*
Rules as the user wants them: alerts left out, with severities and labels of the user's own. Recording rules stay as they are.
What `rules.alerts` says about one alert wins over what is said for all. Returns a list of groups. Argument: (list $ rules).
*/}}
{{- define "prober.adjustedRules" -}}
{{- $values := (index . 0).Values.rules -}}
{{- $groups := list -}}
{{- range $group := (index . 1).groups -}}
{{- $kept := list -}}
{{- range $rule := $group.rules -}}
{{- $own := dict -}}
{{- if $rule.alert -}}
{{- $own = index $values.alerts $rule.alert | default dict -}}
{{- $labels := deepCopy ($rule.labels | default dict) -}}
{{- with index $values.severities ($labels.severity | default "") }}{{ $_ := set $labels "severity" . }}{{ end -}}
{{- range $name, $value := $values.alertLabels }}{{ $_ := set $labels $name $value }}{{ end -}}
{{- range $name, $value := $own.labels }}{{ $_ := set $labels $name $value }}{{ end -}}
{{- with $own.severity }}{{ $_ := set $labels "severity" . }}{{ end -}}
{{- if $labels }}{{ $_ := set $rule "labels" $labels }}{{ end -}}
{{- with $own.for }}{{ $_ := set $rule "for" . }}{{ end -}}
{{- end -}}
{{- if ne (toString $own.enabled) "false" }}{{ $kept = append $kept $rule }}{{ end -}}
{{- end -}}
{{- if $kept }}{{ $groups = append $groups (set $group "rules" $kept) }}{{ end -}}
{{- end -}}
{{- toYaml $groups -}}
{{- end }}

{{/* The names of all alerts, as JSON: of the files, and of the user's own objectives. */}}
{{- define "prober.alertNames" -}}
{{- $names := list -}}
{{- $texts := list .Values.rules.objectives -}}
{{- $files := .Files -}}
{{- range $path, $_ := .Files.Glob "alerts/*.rules.yaml" }}{{ $texts = append $texts ($files.Get $path) }}{{ end -}}
{{- range $text := $texts -}}
{{- range $group := (fromYaml $text).groups -}}
{{- range $rule := $group.rules -}}
{{- with $rule.alert }}{{ $names = append $names . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- uniq $names | toJson -}}
{{- end }}
