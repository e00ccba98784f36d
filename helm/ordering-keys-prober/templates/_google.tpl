{{/*
Who a component is for Google Cloud. On GKE its node's metadata server says so, and nothing is mounted. Elsewhere a credentials file does:
the key of a Google service account, from a Secret, or the file that exchanges the token of the Kubernetes service account for one of Google's
(workload identity federation), rendered here because nothing in it is secret.
*/}}
{{- define "prober.googleFolder" -}}
/var/run/google
{{- end }}

{{/* Whether a component has a key, or federation: "key", "federation", or nothing. Argument: (list $ component). */}}
{{- define "prober.googleIdentity" -}}
{{- $values := (index . 0).Values -}}
{{- if (index $values.serviceAccounts (index . 1)).keySecret.name -}}
key
{{- else if $values.workloadIdentityFederation.provider -}}
federation
{{- end -}}
{{- end }}

{{/* Whether the metadata server of a GKE node is asked at all: "true", or nothing. */}}
{{- define "prober.usesMetadataServer" -}}
{{- $elsewhere := .Values.workloadIdentityFederation.provider -}}
{{- range $account := .Values.serviceAccounts -}}
{{- $elsewhere = or $elsewhere $account.keySecret.name -}}
{{- end -}}
{{- if not $elsewhere }}true{{ end -}}
{{- end }}

{{/* Argument: (list $ component ...). */}}
{{- define "prober.googleEnv" -}}
{{- if include "prober.googleIdentity" . }}
- name: GOOGLE_APPLICATION_CREDENTIALS
  value: {{ include "prober.googleFolder" . }}/credentials.json
{{- end }}
{{- end }}

{{/* Argument: (list $ component ...). */}}
{{- define "prober.googleMount" -}}
{{- if include "prober.googleIdentity" . }}
- name: google
  mountPath: {{ include "prober.googleFolder" . }}
  readOnly: true
{{- end }}
{{- end }}

{{/* Argument: (list $ component ...). */}}
{{- define "prober.googleVolume" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $identity := include "prober.googleIdentity" . -}}
{{- if eq $identity "key" }}
{{- with (index $root.Values.serviceAccounts $component).keySecret }}
- name: google
  secret:
    secretName: {{ .name }}
    items:
      - {key: {{ .key | quote }}, path: credentials.json}
{{- end }}
{{- else if eq $identity "federation" }}
- name: google
  projected:
    sources:
      - configMap:
          name: {{ include "prober.fullname" $root }}-google
          items:
            - {key: {{ $component }}.json, path: credentials.json}
      - serviceAccountToken:
          path: token
          audience: {{ include "prober.federationAudience" $root | quote }}
          expirationSeconds: {{ $root.Values.workloadIdentityFederation.tokenExpirationSeconds }}
{{- end }}
{{- end }}

{{/* Whom the Kubernetes token is for: by default what a provider accepts without configuration. */}}
{{- define "prober.federationAudience" -}}
{{- with .Values.workloadIdentityFederation -}}
{{- default (printf "https://iam.googleapis.com/%s" .provider) .audience -}}
{{- end -}}
{{- end }}

{{/* The credentials file of a component, as `gcloud iam workload-identity-pools create-cred-config` would write it. Argument: (list $ component). */}}
{{- define "prober.federationFile" -}}
{{- $values := (index . 0).Values -}}
{{- $source := dict "file" (printf "%s/token" (include "prober.googleFolder" .)) "format" (dict "type" "text") -}}
{{- $file := dict "type" "external_account" "universe_domain" "googleapis.com" "subject_token_type" "urn:ietf:params:oauth:token-type:jwt" -}}
{{- $_ := set $file "audience" (printf "//iam.googleapis.com/%s" $values.workloadIdentityFederation.provider) -}}
{{- $_ := set $file "token_url" "https://sts.googleapis.com/v1/token" -}}
{{- $_ := set $file "credential_source" $source -}}
{{- with (index $values.serviceAccounts (index . 1)).impersonate -}}
{{- $_ := set $file "service_account_impersonation_url" (printf "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/%s:generateAccessToken" .) -}}
{{- end -}}
{{- $file | toPrettyJson -}}
{{- end }}
