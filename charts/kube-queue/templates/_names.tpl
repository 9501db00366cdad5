{{/* Used by several templates: names, labels, images. */}}

{{/*
The namespace is fixed: policies recognize the programs by their ServiceAccounts, and the kubectl plugin reads
Queues in it.
*/}}
{{- define "kube-queue.namespace" -}}
kube-queue
{{- end -}}

{{/* auto: the namespace of the release exists, another one may not exist. */}}
{{- define "kube-queue.ownNamespace" -}}
{{- $create := .Values.namespace.create -}}
{{- if eq (toString $create) "auto" -}}
{{- $create = ne .Release.Namespace (include "kube-queue.namespace" .) -}}
{{- end -}}
{{- if $create }}true{{ end -}}
{{- end -}}

{{- define "kube-queue.labels" -}}
{{- include "kube-queue.labelsWith" (list . dict) -}}
{{- end -}}

{{/* With --reuse-values, an upgrade has the values of the earlier chart, and lacks those that are new. */}}
{{- define "kube-queue.checkValues" -}}
{{- if not (and .Values.controller.ports .Values.jobExtensions.ports .Values.controller.policy .Values.web) -}}
{{- fail "the values are those of an earlier release; upgrade with --reset-then-reuse-values instead of --reuse-values" -}}
{{- end -}}
{{- end -}}

{{/* list ROOT LABELS: the labels of an object. Those that a user sets win over those of the chart. */}}
{{- define "kube-queue.labelsWith" -}}
{{- $root := index . 0 -}}
{{- include "kube-queue.checkValues" $root -}}
{{- $labels := include "kube-queue.versionLabels" $root | fromYaml | merge (dict
  "app.kubernetes.io/part-of" "kube-queue"
  "app.kubernetes.io/managed-by" $root.Release.Service
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")) -}}
{{- mergeOverwrite $labels (deepCopy ($root.Values.commonLabels | default dict)) (index . 1) | toYaml -}}
{{- end -}}

{{/* Those that pods have too. The others would replace the pods without another reason. */}}
{{- define "kube-queue.versionLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | quote }}
{{- end -}}

{{/* The selector of a Deployment is immutable, so it has no other labels. */}}
{{- define "kube-queue.selector" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/part-of: kube-queue
{{- end -}}

{{/* list ROOT IMAGE */}}
{{- define "kube-queue.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- with $root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest -}}
@{{ $image.digest }}
{{- else -}}
:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end -}}
