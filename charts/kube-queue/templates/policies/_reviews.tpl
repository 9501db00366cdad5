{{/*
The webhook of kube-queue-controller, which answers reviews.
*/}}

{{- define "kube-queue.reviewsName" -}}
kube-queue-controller-webhook
{{- end -}}

{{/*
What proves that a review comes from an API server: certificate, policy, or nothing, and then reviews
are off.
*/}}
{{- define "kube-queue.reviewsBy" -}}
{{- if .Values.reviews.enabled -}}
{{- if .Values.reviews.clientCASecret -}}
certificate
{{- else if include "kube-queue.policies" (list . "auto" "MutatingAdmissionPolicy" 36) -}}
policy
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The policy that proves that a review comes from an API server, its binding and its Secret. */}}
{{- define "kube-queue.reviewProof" -}}
# What the policy below copies into reviews. kube-queue-controller writes it, and replaces it every
# hour. Applying this file again keeps it.
apiVersion: v1
kind: Secret
metadata:
  name: kube-queue-reviews-proof
  namespace: {{ include "kube-queue.namespace" . }}
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
type: Opaque
---
# Proves to kube-queue-controller that a review comes from an API server, which knows its author:
# whoever reaches the port of the webhook could name any author. Policies change an object before
# webhooks see it. The answer replaces the status, and the schema refuses a status that has only the
# proof, so it is never in a response. Without the proof kube-queue-controller does not answer.
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: kube-queue-reviews
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  paramKind:
    apiVersion: v1
    kind: Secret
  matchConstraints:
    matchPolicy: Exact
    resourceRules:
    - apiGroups: [visibility.kube-queue.dev]
      apiVersions: [v1alpha1]
      operations: [CREATE]
      resources: [queuereviews, queueunitreviews, quotareviews]
      scope: Namespaced
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: 'add', path: '/status', value: {'proof': params.?data.?current.orValue('')}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: kube-queue-reviews
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  policyName: kube-queue-reviews
  paramRef:
    name: kube-queue-reviews-proof
    namespace: {{ include "kube-queue.namespace" . }}
    # Without the Secret, the webhook says what to do.
    parameterNotFoundAction: Allow
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
    targetPort: {{ .Values.controller.ports.webhook }}
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
