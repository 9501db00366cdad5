{{/* Used by several templates: names, labels, images. */}}

{{/* The namespace is fixed: policies, programs and the documentation refer to it. */}}
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
app.kubernetes.io/part-of: kube-queue
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{/* The selector of a Deployment is immutable. */}}
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
