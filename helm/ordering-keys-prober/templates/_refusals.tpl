{{/* What the schema cannot see: values that contradict each other. All of them are reported at once. */}}
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
{{- if ne .Values.status.job.command "none" -}}
{{- $wrong = append $wrong "status.job.command needs status.existingSecret.name: a Job cannot mount the SQLite file of a prober's pod; run the command in that pod (docs/deploy.md)" -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.status.job.command "downgrade") (not .Values.status.job.to) -}}
{{- $wrong = append $wrong "status.job.command is downgrade, so status.job.to must be the revision of the older version: `ordering-prober store status` in its image prints it" -}}
{{- end -}}
{{- if and (eq (toString (.Values.config.api | default dict).reads) "token") (not .Values.api.existingSecret.name) -}}
{{- $wrong = append $wrong "config.api.reads is token, so api.existingSecret.name must name a Secret with the token, or nobody could read" -}}
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
{{- if and (eq .Values.jobs.mode "sparkOperator") $volume -}}
{{- $wrong = append $wrong "jobs.mode sparkOperator needs history.location: executors do not mount history.volume" -}}
{{- end -}}
{{- if and (eq .Values.jobs.mode "sparkOperator") .Values.jobs.spark.rbac.create (eq (include "prober.serviceAccount" (list . "jobs")) "default") -}}
{{- $wrong = append $wrong "jobs.mode sparkOperator would let every pod of the namespace make pods, since serviceAccounts.jobs is the account `default`: name another one, or set jobs.spark.rbac.create: false" -}}
{{- end -}}
{{- with .Values.api.autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- $wrong = append $wrong "api.autoscaling.minReplicas is more than maxReplicas" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.api.autoscaling.enabled (not .Values.api.enabled) -}}
{{- $wrong = append $wrong "api.autoscaling.enabled does nothing without api.enabled" -}}
{{- end -}}
{{- if and .Values.api.autoscaling.enabled (not .Values.api.resources.requests.cpu) -}}
{{- $wrong = append $wrong "api.autoscaling.enabled needs api.resources.requests.cpu: utilization is a share of what is requested" -}}
{{- end -}}
{{- $wrong = concat $wrong (include "prober.deploymentRefusals" . | fromJsonArray) -}}
{{- $wrong = concat $wrong (include "prober.refuseShipped" . | fromYamlArray) -}}
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
push.host: the chart sets it
push.port: the chart sets it
history.location: write history.location
history.reports: write history.reports
history.spool: the chart sets it
sharding: the chart sets it as soon as prober.replicas is more than 1
{{- end }}

{{/* What is wrong about alerts and dashboards, as a list: files that are not in the chart, links to nowhere, rules of other objectives. */}}
{{- define "prober.refuseShipped" -}}
{{- $wrong := list -}}
{{- range $link, $meaning := include "prober.linkMeanings" . | fromYaml -}}
{{- $user := ternary "rules" "dashboards" $.Values.rules.enabled -}}
{{- $needed := or $.Values.rules.enabled (and $.Values.dashboards.enabled (ne $link "dashboards")) -}}
{{- if and $needed (not (get $.Values.links $link)) -}}
{{- $wrong = append $wrong (printf "%s.enabled needs links.%s: %s" $user $link $meaning) -}}
{{- end -}}
{{- end -}}
{{- $dropped := "is not in this chart: it is a link in the repository, and what copied or unpacked the chart dropped links. Install the archive that `helm package` (make chart) writes, or a git clone" -}}
{{- if and .Values.rules.enabled (ne (len (.Files.Glob "alerts/{objectives,service,prober}.rules.yaml")) 3) -}}
{{- $wrong = append $wrong (printf "rules.enabled, but the folder alerts %s" $dropped) -}}
{{- end -}}
{{- if and .Values.dashboards.enabled (not (.Files.Glob "dashboards/*.json")) -}}
{{- $wrong = append $wrong (printf "dashboards.enabled, but the folder dashboards %s" $dropped) -}}
{{- end -}}
{{- if .Values.rules.enabled -}}
{{- $wrong = concat $wrong (include "prober.refuseObjectives" . | fromYamlArray) -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}

{{/* Where links of alerts and dashboards lead to, by the value that says it. */}}
{{- define "prober.linkMeanings" -}}
dashboards: the address of your Grafana, such as https://grafana.example.com
pages: the address of this release's status page, such as https://prober.example.com
{{- end }}

{{/* What is wrong about objectives, as a list. Helm cannot make rules of them: `ordering-prober alerts` does, and writes down what it made them from. */}}
{{- define "prober.refuseObjectives" -}}
{{- $wrong := list -}}
{{- $command := "`ordering-prober alerts --config prober.yaml --directory out` writes them, prober.yaml being the content of `config`; then add --set-file rules.objectives=out/objectives.rules.yaml" -}}
{{- $from := include "prober.rulesMadeFrom" . -}}
{{- if and .Values.rules.objectives (not $from) -}}
{{- $wrong = append $wrong (printf "rules.objectives does not say which objectives its rules are for (a line `# slos: ...`): %s" $command) -}}
{{- else -}}
{{- $made := $from | default "{}" | fromJson -}}
{{- $wanted := .Values.config.slos | default dict | toJson | fromJson -}}
{{- $different := list -}}
{{- range $name := concat (keys $made) (keys $wanted) | uniq | sortAlpha -}}
{{- if not (deepEqual (dict "is" (get $made $name)) (dict "is" (get $wanted $name))) -}}
{{- $different = append $different $name -}}
{{- end -}}
{{- end -}}
{{- if $different -}}
{{- $rules := ternary "rules.objectives was" "the chart's own rules were" (not (empty .Values.rules.objectives)) -}}
{{- $wrong = append $wrong (printf "%s made for other objectives than config.slos (different: %s): %s" $rules (join ", " $different) $command) -}}
{{- end -}}
{{- end -}}
{{- range $pod := list .Values.prober .Values.api -}}
{{- range $variable := $pod.extraEnv -}}
{{- if hasPrefix "ORDERING_PROBER_SLOS__" (upper $variable.name) -}}
{{- $wrong = append $wrong (printf "extraEnv sets %s: write objectives into config.slos, where the chart can compare them with the rules" $variable.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}
