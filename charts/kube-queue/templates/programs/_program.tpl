{{/*
The common part of the programs. The argument is a dict of root, name, values (the
program's part of values.yaml), path (the key of that part), fixed (settings that have their
own values: lists of field, flag and what to set instead), configKind, args, env, webhook
(whether it serves webhooks) and clientCA (the Secret with the CA of who may call them; empty for everybody). With pages,
the program serves pages, and has no file, no metrics and no token of its ServiceAccount.
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
{{- $fields := deepCopy (.values.config | default dict) -}}
{{- $devices := dict -}}
{{- range $name, $value := .root.Values.devices }}{{ if $value }}{{ $_ := set $devices $name $value }}{{ end }}{{ end -}}
{{- if $devices }}{{ $_ := set $fields "devices" $devices }}{{ end -}}
{{- if $fields }}{{ toYaml $fields }}{{ end -}}
{{- end -}}

{{- define "kube-queue.deployment" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $args := .args -}}
{{- $metrics := and $root.Values.metrics.enabled (not .pages) -}}
{{- $ports := $values.ports -}}
{{- $volumes := $values.extraVolumes -}}
{{- $mounts := $values.extraVolumeMounts -}}
{{- $file := "" -}}
{{- if not .pages }}{{ $file = include "kube-queue.fields" . }}{{ end -}}
{{- if ne (int $ports.health) 8081 -}}
{{- $args = append $args (printf "--health-bind-address=:%d" (int $ports.health)) -}}
{{- end -}}
{{- if not (or $metrics .pages) -}}
{{- $args = append $args "--metrics-bind-address=0" -}}
{{- else if and $metrics (ne (int $ports.metrics) 8443) -}}
{{- $args = append $args (printf "--metrics-bind-address=:%d" (int $ports.metrics)) -}}
{{- end -}}
{{- if $file -}}
{{- $args = append $args "--config=/etc/kube-queue/config.yaml" -}}
{{- $volumes = append $volumes (dict "name" "config" "configMap" (dict "name" .name)) -}}
{{- $mounts = append $mounts (dict "name" "config" "mountPath" "/etc/kube-queue" "readOnly" true) -}}
{{- end -}}
{{- with .clientCA -}}
{{- $volumes = append $volumes (dict "name" "client-ca" "secret" (dict "secretName" . "items" (list (dict "key" "ca.crt" "path" "ca.crt")))) -}}
{{- $mounts = append $mounts (dict "name" "client-ca" "mountPath" "/etc/kube-queue-client-ca" "readOnly" true) -}}
{{- end -}}
{{- $args = concat $args ($values.extraArgs | default list) -}}
{{- $env := concat .env ($values.extraEnv | default list) -}}
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
  {{- with $values.updateStrategy }}
  strategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "kube-queue.selector" .name | nindent 6 }}
  template:
    metadata:
      labels:
        {{- $versions := include "kube-queue.versionLabels" $root | fromYaml }}
        {{- mergeOverwrite $versions (deepCopy ($values.podLabels | default dict)) | toYaml | nindent 8 }}
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
      {{- if .pages }}
      automountServiceAccountToken: false
      {{- end }}
      enableServiceLinks: false
      {{- if $values.hostNetwork }}
      hostNetwork: true
      {{- end }}
      {{- with $values.dnsPolicy }}
      dnsPolicy: {{ . }}
      {{- end }}
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
      {{- with $values.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
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
          containerPort: {{ $ports.health }}
        {{- if $metrics }}
        - name: metrics
          containerPort: {{ $ports.metrics }}
        {{- end }}
        {{- if .pages }}
        - name: pages
          containerPort: 8080
        {{- end }}
        {{- if .webhook }}
        - name: webhook
          containerPort: {{ $ports.webhook }}
        {{- end }}
        livenessProbe:
          httpGet:
            path: /healthz
            port: health
          {{- with $values.livenessProbe }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        readinessProbe:
          httpGet:
            path: /readyz
            port: health
          {{- with $values.readinessProbe }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        {{- with $values.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- with $values.securityContext }}
        securityContext:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- with $mounts }}
        volumeMounts:
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $volumes }}
      volumes:
      {{- toYaml . | nindent 6 }}
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
  # Also if no replica is ready.
  unhealthyPodEvictionPolicy: AlwaysAllow
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
