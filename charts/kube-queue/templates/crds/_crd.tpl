{{/* list ROOT NAME: a CRD of files/crds, which controller-gen writes, with our labels. */}}
{{- define "kube-queue.crd" -}}
{{- $root := index . 0 -}}
{{- $crd := $root.Files.Get (printf "files/crds/%s.yaml" (index . 1)) | fromYaml -}}
{{- $_ := set $crd.metadata "labels" (include "kube-queue.labels" $root | fromYaml) -}}
{{- if $root.Values.crds.keep -}}
{{- $_ := set $crd.metadata.annotations "helm.sh/resource-policy" "keep" -}}
{{- end -}}
{{- toYaml $crd -}}
{{- end -}}
