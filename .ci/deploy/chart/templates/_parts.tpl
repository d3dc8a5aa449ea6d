{{- define "dominds.labels" -}}
app.kubernetes.io/name: dominds
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "dominds.metadata" -}}
name: {{ .root.Release.Name }}-{{ .part }}
labels:
  {{- include "dominds.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* The pod of a part of ours, but for its command and probes. */}}
{{- define "dominds.pod" -}}
automountServiceAccountToken: false
securityContext: {runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001, seccompProfile: {type: RuntimeDefault}}
volumes:
  - {name: data, emptyDir: {}}
  {{- with .root.Values.minds }}
  - name: minds
    configMap: {name: {{ . | quote }}}
  {{- end }}
{{- end }}

{{- define "dominds.container" -}}
image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
envFrom:
  - secretRef: {name: {{ .root.Values.secret | quote }}}
env:
  - {name: ALLOWED_HOSTS, value: {{ .root.Values.host | quote }}}
  - {name: DOMINDS_BEHIND_PROXY, value: "1"}
  {{- range $name, $value := .root.Values.environment }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
volumeMounts:
  - {name: data, mountPath: /data}
  {{- if .root.Values.minds }}
  - {name: minds, mountPath: /minds, readOnly: true}
  {{- end }}
{{- end }}
