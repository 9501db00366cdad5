{{/*
The common part of both programs. The argument is a dict of root, name, values (the
program's part of values.yaml), path (the key of that part), fixed (settings that have their
own values: lists of field, flag and what to set instead), configKind, args, env, webhook
(whether it serves webhooks) and clientCA (the Secret with the CA of who may call them; empty for everybody).
*/}}

{{- define "kube-queue.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}
  namespace: {{ include "kube-queue.namespace" .root }}
  labels:
    {{- include "kube-queue.labels" .root | nindent 4 }}
data:
  config.yaml: |
    {{- include "kube-queue.config" . | nindent 4 }}
{{- end -}}

{{- define "kube-queue.config" -}}
apiVersion: config.kube-queue.dev/v1alpha1
kind: {{ .configKind }}
{{ include "kube-queue.fields" . }}
{{- end -}}

{{/* The fields of the program's file; nothing if it needs no file. */}}
{{- define "kube-queue.fields" -}}
{{- $fields := deepCopy .values.config -}}
{{- $devices := dict -}}
{{- range $name, $value := .root.Values.devices }}{{ if $value }}{{ $_ := set $devices $name $value }}{{ end }}{{ end -}}
{{- if $devices }}{{ $_ := set $fields "devices" $devices }}{{ end -}}
{{- if $fields }}{{ toYaml $fields }}{{ end -}}
{{- end -}}

{{- define "kube-queue.deployment" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $args := .args -}}
{{- $metrics := $root.Values.metrics.enabled -}}
{{- $file := include "kube-queue.fields" . -}}
{{- if not $metrics -}}
{{- $args = append $args "--metrics-bind-address=0" -}}
{{- end -}}
{{- if $file -}}
{{- $args = append $args "--config=/etc/kube-queue/config.yaml" -}}
{{- end -}}
{{- $args = concat $args $values.extraArgs -}}
{{- $env := concat .env $values.extraEnv -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ include "kube-queue.namespace" $root }}
  labels:
    app.kubernetes.io/name: {{ .name }}
    {{- include "kube-queue.labels" $root | nindent 4 }}
spec:
  replicas: {{ $values.replicas }}
  selector:
    matchLabels:
      {{- include "kube-queue.selector" .name | nindent 6 }}
  template:
    metadata:
      labels:
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- include "kube-queue.selector" .name | nindent 8 }}
      annotations:
        kubectl.kubernetes.io/default-container: {{ .name }}
        {{- if $file }}
        # A program reads its file once, so a changed file must replace the pods.
        kube-queue/config-checksum: {{ include "kube-queue.config" . | sha256sum }}
        {{- end }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ .name }}
      enableServiceLinks: false
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.topologySpreadConstraints }}
      topologySpreadConstraints:
      {{- range . }}
      - {{ toYaml . | nindent 8 | trim }}
        {{- if not .labelSelector }}
        labelSelector:
          matchLabels:
            {{- include "kube-queue.selector" $.name | nindent 12 }}
        {{- end }}
      {{- end }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
      - name: {{ .name }}
        image: {{ include "kube-queue.image" (list $root $values.image) }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        {{- with $args }}
        args:
        {{- range . }}
        - {{ . | quote }}
        {{- end }}
        {{- end }}
        {{- with $env }}
        env:
        {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        - name: health
          containerPort: 8081
        {{- if $metrics }}
        - name: metrics
          containerPort: 8443
        {{- end }}
        {{- if .webhook }}
        - name: webhook
          containerPort: 9443
        {{- end }}
        livenessProbe:
          httpGet:
            path: /healthz
            port: health
          timeoutSeconds: 5
          failureThreshold: 6
        readinessProbe:
          httpGet:
            path: /readyz
            port: health
          periodSeconds: 5
        {{- with $values.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities:
            drop: [ALL]
        {{- if or $file .clientCA }}
        volumeMounts:
        {{- if $file }}
        - name: config
          mountPath: /etc/kube-queue
          readOnly: true
        {{- end }}
        {{- if .clientCA }}
        - name: client-ca
          mountPath: /etc/kube-queue-client-ca
          readOnly: true
        {{- end }}
        {{- end }}
      {{- if or $file .clientCA }}
      volumes:
      {{- if $file }}
      - name: config
        configMap:
          name: {{ .name }}
      {{- end }}
      {{- with .clientCA }}
      - name: client-ca
        secret:
          secretName: {{ . }}
          items: [{key: ca.crt, path: ca.crt}]
      {{- end }}
      {{- end }}
{{- end -}}

{{- define "kube-queue.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ include "kube-queue.namespace" .root }}
  labels:
    {{- include "kube-queue.labels" .root | nindent 4 }}
spec:
  # A node can be drained with one replica too: running jobs do not need the program.
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "kube-queue.selector" .name | nindent 6 }}
{{- end -}}

{{- define "kube-queue.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}-metrics
  namespace: {{ include "kube-queue.namespace" .root }}
  labels:
    app.kubernetes.io/name: {{ .name }}
    {{- include "kube-queue.labels" .root | nindent 4 }}
spec:
  # Prometheus scrapes each replica.
  clusterIP: None
  selector:
    {{- include "kube-queue.selector" .name | nindent 4 }}
  ports:
  - name: metrics
    port: 8443
    targetPort: metrics
{{- end -}}

{{- define "kube-queue.program" -}}
{{- include "kube-queue.checkSettings" . -}}
{{- if include "kube-queue.fields" . }}
{{ include "kube-queue.configMap" . }}
---
{{- end }}
{{ include "kube-queue.deployment" . }}
{{- if .root.Values.podDisruptionBudget.enabled }}
---
{{ include "kube-queue.disruptionBudget" . }}
{{- end }}
{{- if .root.Values.metrics.enabled }}
---
{{ include "kube-queue.service" . }}
{{- end }}
{{- if .root.Values.networkPolicy.enabled }}
---
{{ include "kube-queue.networkPolicy" . }}
{{- end }}
{{- end -}}
