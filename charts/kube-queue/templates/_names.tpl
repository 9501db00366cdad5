{{/* What stands under more than one template: names, labels, images. */}}

{{/* The contract with the user fixes it: policies, programs and documents name it. */}}
{{- define "kube-queue.namespace" -}}
kube-queue
{{- end -}}

{{/* auto: the release's own namespace is there, another one may not be. */}}
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

{{/* By these a Deployment knows its pods; they never change. */}}
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
