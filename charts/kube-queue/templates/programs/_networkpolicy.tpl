{{- define "kube-queue.networkPolicy" -}}
{{- $values := .root.Values -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ include "kube-queue.namespace" .root }}
  labels:
    {{- include "kube-queue.labels" .root | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "kube-queue.selector" .name | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
  # Health checks come from the node.
  - ports:
    - port: health
  {{- if .pages }}
  # The proxy, wherever it is: each request needs a token.
  - ports:
    - port: pages
  {{- else if $values.metrics.enabled }}
  - ports:
    - port: metrics
    {{- with $values.networkPolicy.metricsFrom }}
    from:
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- if .webhook }}
  # API servers, which are not in a namespace.
  - ports:
    - port: webhook
  {{- end }}
  egress:
  # Only the API server, by its address: not even DNS.
  - ports:
    {{- range $values.networkPolicy.apiServerPorts }}
    - port: {{ . }}
    {{- end }}
{{- end -}}
