{{/*
The webhook of kube-queue-controller, which answers reviews.
*/}}

{{- define "kube-queue.reviewsName" -}}
kube-queue-controller-webhook
{{- end -}}

{{- define "kube-queue.reviewsService" -}}
# Without a selector: only the replica that leads can answer, and writes its address into the
# EndpointSlice of the Service.
apiVersion: v1
kind: Service
metadata:
  name: {{ include "kube-queue.reviewsName" . }}
  namespace: {{ include "kube-queue.namespace" . }}
  labels:
    app.kubernetes.io/name: kube-queue-controller
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  ports:
  - name: webhook
    port: 443
    targetPort: 9443
{{- end -}}

{{- define "kube-queue.reviewWebhooks" -}}
# Reviews ask kube-queue-controller why a unit waits, who is in a queue, and how the quota is used.
# They are created with dryRun=All, and this webhook puts the answer into their status. While it is
# down, a review fails; nothing else meets it.
#
# caBundle is not here. kube-queue-controller writes it, and applying this file again keeps it.
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: kube-queue-reviews
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
  {{- if .Values.holdPolicies.webhook.certManager.enabled }}
  annotations:
    cert-manager.io/inject-ca-from: {{ include "kube-queue.namespace" . }}/{{ include "kube-queue.reviewsName" . }}
  {{- end }}
webhooks:
{{- range list "queuereviews" "queueunitreviews" "quotareviews" }}
- name: {{ . }}.visibility.kube-queue.dev
  {{- include "kube-queue.webhookCall" (list $ (include "kube-queue.reviewsName" $) (printf "/reviews/%s" .) 10) | nindent 2 }}
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchPolicy: Exact
  rules:
  - apiGroups: [visibility.kube-queue.dev]
    apiVersions: [v1alpha1]
    operations: [CREATE]
    resources: [{{ . }}]
    scope: Namespaced
{{- end }}
{{- end -}}
