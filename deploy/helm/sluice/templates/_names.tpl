{{- define "sluice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if contains (include "sluice.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "sluice.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "sluice.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}
{{- .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create }}
{{- include "sluice.fullname" . }}
{{- else -}}
default
{{- end }}
{{- end }}

{{- define "sluice.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "sluice.policyMap" -}}
{{- if .Values.existingPolicies }}
{{- .Values.existingPolicies }}
{{- else if .Values.policies }}
{{- include "sluice.fullname" . }}-policies
{{- end }}
{{- end }}

{{- define "sluice.scheme" -}}
{{- if .Values.tls.existingSecret }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{- define "sluice.env" -}}
{{- if include "sluice.policyMap" . }}
- { name: RATE_LIMIT_CONFIG, value: /etc/sluice/policies }
{{- end }}
{{- if or (include "sluice.policyMap" .) .Values.envFromSecrets }}
- { name: SLUICE_POLICY_SNAPSHOT, value: /var/lib/sluice/policies.json }
{{- end }}
{{- if .Values.tokens.existingSecret }}
- { name: SLUICE_TOKENS, value: /etc/sluice/tokens/tokens.yaml }
{{- end }}
{{- if .Values.adminToken.existingSecret }}
- { name: SLUICE_ADMIN_TOKEN_FROM, value: /etc/sluice/admin-token/token }
{{- end }}
{{- if .Values.tls.existingSecret }}
- { name: SLUICE_TLS_CERT, value: /etc/sluice/tls/tls.crt }
- { name: SLUICE_TLS_KEY, value: /etc/sluice/tls/tls.key }
{{- if .Values.tls.clientCa }}
- { name: SLUICE_TLS_CLIENT_CA, value: /etc/sluice/tls/ca.crt }
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sluice.mounts" -}}
- { name: state, mountPath: /var/lib/sluice }
{{- if include "sluice.policyMap" . }}
- { name: policies, mountPath: /etc/sluice/policies, readOnly: true }
{{- end }}
{{- if .Values.tokens.existingSecret }}
- { name: tokens, mountPath: /etc/sluice/tokens, readOnly: true }
{{- end }}
{{- if .Values.adminToken.existingSecret }}
- { name: admin-token, mountPath: /etc/sluice/admin-token, readOnly: true }
{{- end }}
{{- if .Values.tls.existingSecret }}
- { name: tls, mountPath: /etc/sluice/tls, readOnly: true }
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sluice.volumes" -}}
- name: state
  emptyDir: { sizeLimit: 64Mi }
{{- with include "sluice.policyMap" . }}
- name: policies
  configMap: { name: {{ . }} }
{{- end }}
{{- with .Values.tokens.existingSecret }}
- name: tokens
  secret: { secretName: {{ . }} }
{{- end }}
{{- with .Values.adminToken.existingSecret }}
- name: admin-token
  secret: { secretName: {{ . }} }
{{- end }}
{{- with .Values.tls.existingSecret }}
- name: tls
  secret: { secretName: {{ . }} }
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sluice.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end }}
