{{/*
The webhook of job-extensions, which holds jobs where policies cannot: its configuration, with the
rules and conditions of the policies, its certificate, and what limits job-extensions to caBundle.
*/}}

{{- define "kube-queue.webhookName" -}}
job-extensions-webhook
{{- end -}}

{{/* list ROOT PATH: how the API server calls the webhook. */}}
{{- define "kube-queue.webhookClient" -}}
{{ include "kube-queue.webhookCall" (list (index . 0) (include "kube-queue.webhookName" (index . 0)) (index . 1) 5) }}
{{- end -}}

{{/* list ROOT SERVICE PATH SECONDS: how the API server calls a webhook behind a Service. */}}
{{- define "kube-queue.webhookCall" -}}
admissionReviewVersions: [v1]
sideEffects: None
timeoutSeconds: {{ index . 3 }}
clientConfig:
  service:
    namespace: {{ include "kube-queue.namespace" (index . 0) }}
    name: {{ index . 1 }}
    path: {{ index . 2 }}
    port: 443
{{- end -}}

{{/* The configuration of the webhooks that hold jobs. */}}
{{- define "kube-queue.holdWebhooks" -}}
{{- $root := . -}}
{{- $kinds := dict -}}
{{- range include "kube-queue.kinds" . | fromJsonArray }}{{ $_ := set $kinds .kind . }}{{ end -}}
# Holds marked jobs where the API server does not serve MutatingAdmissionPolicy: it asks
# job-extensions, which suspends the job. Rules and conditions are those of the policies, so
# objects of users who do not use kube-queue never meet the webhook: it may be down.
#
# caBundle is not here. job-extensions writes it, and applying this file again keeps it.
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: kube-queue-hold
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
  annotations:
    {{- include "kube-queue.graceAnnotations" . | nindent 4 }}
    {{- if .Values.holdPolicies.webhook.certManager.enabled }}
    cert-manager.io/inject-ca-from: {{ include "kube-queue.namespace" . }}/{{ include "kube-queue.webhookName" . }}
    {{- end }}
webhooks:
{{- range keys $kinds | sortAlpha }}
{{- $kind := get $kinds . }}
{{- if include "kube-queue.hold" (list $root $kind) }}
- name: hold-{{ lower $kind.kind }}.kube-queue.dev
  {{- include "kube-queue.webhookClient" (list $root "/hold") | nindent 2 }}
  failurePolicy: Fail
  # A webhook that runs later may remove the suspend field. If it adds the annotation, this one is not called again.
  reinvocationPolicy: IfNeeded
  matchPolicy: Equivalent
  rules:
  {{- include "kube-queue.holdRule" (list $root $kind) | nindent 2 }}
  matchConditions:
  {{- include "kube-queue.holdConditions" (list $root $kind) | trim | nindent 2 }}
{{- end }}
{{- end }}
{{- if include "kube-queue.manageJobs" . }}
# In a namespace with label kube-queue/managed: "true", every new job of these kinds is queued.
- name: managed-namespace.kube-queue.dev
  {{- include "kube-queue.webhookClient" (list $root (eq (include "kube-queue.fence" .) "deny" | ternary "/managed-fenced" "/managed")) | nindent 2 }}
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  matchPolicy: Equivalent
  namespaceSelector:
    matchLabels:
      kube-queue/managed: "true"
  rules:
  {{- include "kube-queue.managedRules" . | nindent 2 }}
  matchConditions:
  {{- include "kube-queue.managedConditions" . | trim | nindent 2 }}
{{- end }}
{{- if include "kube-queue.queuesPods" . }}
# Marked pods, those of jobs whose queue gates growth, and all pods of managed namespaces, wait at a scheduling gate.
{{- range $name, $managed := include "kube-queue.managesPods" . | empty | ternary (dict "gate" "" "growth" "growth") (dict "gate" "" "growth" "growth" "managed" "true") }}
- name: {{ $name }}-pod.kube-queue.dev
  {{- include "kube-queue.webhookClient" (list $root (eq $managed "true" | ternary "/gate-managed" "/gate")) | nindent 2 }}
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  matchPolicy: Equivalent
  {{- if eq $managed "true" }}
  namespaceSelector:
    matchLabels:
      kube-queue/managed: "true"
  {{- end }}
  rules:
  {{- include "kube-queue.gateRule" . | nindent 2 }}
  matchConditions:
  {{- include "kube-queue.gateConditions" (list $root $managed) | trim | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The configuration of the webhook that refuses an invalid quota tree. */}}
{{- define "kube-queue.treeWebhook" -}}
# Refuses an invalid ElasticQuotaTree when it is applied. While job-extensions is down it is accepted:
# its status says what is wrong, and the last valid tree stays in force.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: kube-queue-trees
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
  {{- if .Values.holdPolicies.webhook.certManager.enabled }}
  annotations:
    cert-manager.io/inject-ca-from: {{ include "kube-queue.namespace" . }}/{{ include "kube-queue.webhookName" . }}
  {{- end }}
webhooks:
- name: elasticquotatree.kube-queue.dev
  {{- include "kube-queue.webhookClient" (list . "/trees") | nindent 2 }}
  failurePolicy: Ignore
  matchPolicy: Equivalent
  # Only trees in this namespace count.
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: kube-system
  rules:
  - apiGroups: [scheduling.sigs.k8s.io]
    apiVersions: [v1beta1]
    operations: [CREATE, UPDATE]
    resources: [elasticquotatrees]
  matchConditions:
  # The metadata of an invalid tree can be changed.
  - name: another-tree
    expression: "request.operation == 'CREATE' || object.?spec != oldObject.?spec"
{{- end -}}

{{/* list ROOT NAME PROGRAM: the Secret with the certificate of the webhooks of a program, or what makes cert-manager create it. */}}
{{- define "kube-queue.webhookCertificate" -}}
{{- $name := index . 1 -}}
{{- $program := index . 2 -}}
{{- with index . 0 -}}
{{- $namespace := include "kube-queue.namespace" . -}}
{{- if .Values.holdPolicies.webhook.certManager.enabled -}}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  secretName: {{ $name }}
  dnsNames: [{{ $name }}.{{ $namespace }}.svc]
  privateKey:
    algorithm: ECDSA
    rotationPolicy: Always
  issuerRef:
    {{- .Values.holdPolicies.webhook.certManager.issuerRef | default (dict "kind" "Issuer" "name" $name) | toYaml | nindent 4 }}
{{- if not .Values.holdPolicies.webhook.certManager.issuerRef }}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  selfSigned: {}
{{- end }}
{{- else -}}
# {{ $program }} writes its certificate here: RBAC cannot restrict the creation of a Secret by
# name, so it must exist. Applying this file again keeps the certificate.
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
type: Opaque
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The policy that limits the programs to caBundle of their own configurations, and its binding. */}}
{{- define "kube-queue.webhookGuard" -}}
# RBAC permits the programs to change their webhook configurations. This policy limits them to
# caBundle: what the webhooks match, and what happens when they fail, only administrators change.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: kube-queue-webhooks
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    - apiGroups: [admissionregistration.k8s.io]
      apiVersions: [v1]
      operations: [UPDATE]
      resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  matchConditions:
  - name: by-a-program
    expression: "request.userInfo.?username.orValue('') in ['{{ include "kube-queue.jobExtensionsUser" . }}', '{{ include "kube-queue.controllerUser" . }}']"
  validations:
  - expression: >-
      object.metadata.?labels == oldObject.metadata.?labels
      && object.metadata.?annotations == oldObject.metadata.?annotations
      && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
      && object.metadata.?finalizers == oldObject.metadata.?finalizers
      && object.webhooks.map(w, w.name) == oldObject.webhooks.map(w, w.name)
      && object.webhooks.all(w, oldObject.webhooks.filter(o, o.name == w.name).all(o,
        w.all(f, f == 'clientConfig' || (f in o && w[f] == o[f])) && o.all(f, f in w)
        && w.clientConfig.all(f, f == 'caBundle' || (f in o.clientConfig && w.clientConfig[f] == o.clientConfig[f]))
        && o.clientConfig.all(f, f == 'caBundle' || f in w.clientConfig)))
    message: the program changes only caBundle of its webhooks
    reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: kube-queue-webhooks
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  policyName: kube-queue-webhooks
  validationActions: [Deny]
{{- end -}}

{{- define "kube-queue.webhookService" -}}
# API servers call the webhooks of all replicas.
apiVersion: v1
kind: Service
metadata:
  name: {{ include "kube-queue.webhookName" . }}
  namespace: {{ include "kube-queue.namespace" . }}
  labels:
    app.kubernetes.io/name: job-extensions
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  selector:
    {{- include "kube-queue.selector" "job-extensions" | nindent 4 }}
  ports:
  - name: webhook
    port: 443
    targetPort: webhook
{{- end -}}
