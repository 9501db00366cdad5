{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}
### {{ $type.Name }}

{{ trim $type.Doc }}
{{ template "kind" $type }}
{{- if gt (len $type.SortedReferences) 1 }}
Used in {{ range $i, $user := $type.SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $user }}{{ end }}.
{{ end }}
{{- range index $type.Markers "kubebuilder:validation:XValidation" }}
{{- if not (hasPrefix "nothing has answered" .Message) }}{{/* the comment of the package says it for all reviews */}}
Validation: {{ .Message }}.
{{ end }}{{ end }}
{{- if $type.EnumValues }}
| value | description |
|---|---|
{{ range $type.EnumValues -}}
| `{{ .Name }}` | {{ template "sentence" (regexReplaceAll "^[A-Z][A-Za-z]* (means (that |to )?)?" .Doc "") }} |
{{ end }}
{{- end }}
{{- if $type.Members }}
| field | type | description |
|---|---|---|
{{ range $type.Members -}}
{{ if ne .Name "metadata" -}}
| `{{ .Name }}` | {{ template "fieldType" .Type }} | {{ template "description" (dict "type" $type.Name "field" .) }}{{ template "validation" . }} |
{{ end -}}
{{ end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* How kubectl names and prints a kind. */}}
{{- define "kind" -}}
{{- $markers := .Markers }}
{{- range index $markers "kubebuilder:resource" }}
Scope: {{ .Scope }}.{{ with .ShortName }} Short name: `{{ join "`, `" . }}`.{{ end }}
{{- $columns := list }}{{ $wide := list }}
{{- range index $markers "kubebuilder:printcolumn" }}
{{- if .Priority }}{{ $wide = append $wide (upper .Name) }}{{ else }}{{ $columns = append $columns (upper .Name) }}{{ end }}
{{- end }}
{{- if $columns }}
Columns of `kubectl get`: {{ join ", " $columns }}{{ if $wide }}; with `-o wide` also {{ join ", " $wide }}{{ end }}.
{{- end }}
{{ end }}
{{- end -}}

{{/* The comment without the name of the field and an article. A field without a comment is an error, so that make
verify finds it. */}}
{{- define "description" -}}
{{- if .field.Doc }}{{ template "sentence" (regexReplaceAll (printf "^%s,? ((is|are) (the )?)?" .field.Name) .field.Doc "") }}
{{- else }}{{ fail (printf "field %s of %s has no description: add a comment to it" .field.Name .type) }}
{{- end }}
{{- end -}}

{{/* A cell that starts with a capital letter. */}}
{{- define "sentence" -}}
{{ template "cell" (printf "%s%s" (upper (substr 0 1 .)) (substr 1 -1 .)) }}
{{- end -}}

{{- define "cell" -}}
{{ . | trim | replace "\n" " " | replace "|" "\\|" }}
{{- end -}}

{{/* The reference of Kubernetes has no section for these types, so a link to one leads nowhere. */}}
{{- define "fieldType" -}}
{{- $quantity := "[Quantity](https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/)" }}
{{- $type := markdownRenderType . }}
{{- $type = regexReplaceAll "\\[ResourceList\\]\\([^)]*\\)" $type (printf "map\\[string\\]%s" $quantity) }}
{{- $type = regexReplaceAll "\\[(ResourceName|ResourceQuotaScope|UID)\\]\\([^)]*\\)" $type "string" }}
{{- $type | replace "object (keys:string, values:string)" "map\\[string\\]string" }}
{{- end -}}

{{/* The default and the validation, in parentheses. These are left out: a field without "required" is optional, the
second column shows the type, which has its own values and rules, an integer has 32 bits, and a name is not empty. A CEL
rule shows its message. */}}
{{- define "validation" -}}
{{- $rules := list }}
{{- $type := .Type }}
{{- range until 2 }}{{ if and $type.UnderlyingType (not (markdownShouldRenderType $type)) }}{{ $type = $type.UnderlyingType }}{{ end }}{{ end }}
{{- with .Default }}{{ $rules = append $rules (printf "default: `%s`" (toString .)) }}{{ end }}
{{- range .Validation }}
{{- if hasPrefix "Required" . }}{{ $rules = prepend $rules "required" }}
{{- else if and $type.EnumValues (hasPrefix "Enum" .) }}
{{- else if not (regexMatch "^((Optional|Schemaless|Type|XPreserveUnknownFields)\\b|Maximum: 2\\.147483647e|Minimum: -2\\.147483648e|(items:)?MinLength: 1$)" .) }}
{{- $rules = append $rules . }}
{{- end }}
{{- end }}
{{- $ofType := list }}
{{- range index $type.Markers "kubebuilder:validation:XValidation" }}{{ $ofType = append $ofType .Message }}{{ end }}
{{- range index .Markers "kubebuilder:validation:XValidation" }}
{{- if not (has .Message $ofType) }}{{ $rules = append $rules .Message }}{{ end }}
{{- end }}
{{- if $rules }} ({{ template "cell" (join "; " $rules) }}){{ end }}
{{- end -}}
