{{- define "toolyard.name" -}}
{{- if contains "toolyard" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-toolyard" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "toolyard.operator" -}}
{{ include "toolyard.name" . }}-operator
{{- end }}

{{- define "toolyard.gateway" -}}
{{ include "toolyard.name" . }}-gateway
{{- end }}

{{- define "toolyard.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "toolyard.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: toolyard
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "toolyard.operatorSelector" -}}
app.kubernetes.io/name: toolyard-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toolyard.gatewaySelector" -}}
app.kubernetes.io/name: toolyard
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toolyard.openrouterSelector" -}}
app.kubernetes.io/name: rockbot-openrouter-mcp
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toolyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "toolyard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
