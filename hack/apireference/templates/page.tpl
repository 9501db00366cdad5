{{- define "gvList" -}}
# API reference

<!-- Written by crd-ref-docs from the types in apis/ (templates: hack/apireference): make generate. -->

The fields of the objects that kube-queue defines, besides `apiVersion`, `kind` and `metadata`. The
API server checks types and validation. Fields without "required" may be omitted.
{{/* Groups are sorted by name. Reversed, the objects that users read most come first. */}}
{{- range $gv := reverse . }}
{{- range $gv.SortedKinds }}
- [{{ . }}](#{{ lower . }}), `{{ $gv.GroupVersionString }}`
{{- end }}
{{- end }}

The keys of annotations and labels on a job are in [job-keys.md](job-keys.md). The fields of the
configuration files are in [settings.md](settings.md).
{{ range reverse . }}{{ template "groupVersion" . }}{{ end }}
{{- end -}}

{{- define "groupVersion" -}}
{{- $gv := . }}
## {{ $gv.GroupVersionString }}

{{ trim $gv.Doc }}
{{ range $gv.SortedKinds }}{{ template "type" $gv.TypeForKind . }}{{ end }}
{{- range $gv.SortedTypes }}{{ if not .GVK }}{{ template "type" . }}{{ end }}{{ end }}
{{- end -}}
