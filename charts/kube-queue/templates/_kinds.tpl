{{/*
The kinds of jobs, by their names in enabledExtensions. Templates for conditions return
"true" or nothing, templates for lists return JSON.
*/}}

{{/* The kinds in files/kinds.json, which hack/kinds generates. Rendering took three times as long with YAML. */}}
{{- define "kube-queue.kinds" -}}
{{- .Files.Get "files/kinds.json" -}}
{{- end -}}

{{- define "kube-queue.allExtensions" -}}
{{- $names := list -}}
{{- range include "kube-queue.kinds" . | fromJsonArray }}{{ range .extensions }}{{ $names = append $names .name }}{{ end }}{{ end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* list ROOT NAMES: the first name of each named kind, without duplicates. */}}
{{- define "kube-queue.canonical" -}}
{{- $first := dict -}}
{{- range include "kube-queue.kinds" (index . 0) | fromJsonArray -}}
{{- range $extension := .extensions }}{{ range .otherNames }}{{ $_ := set $first . $extension.name }}{{ end }}{{ end -}}
{{- end -}}
{{- $names := list -}}
{{- range index . 1 }}{{ $names = append $names (get $first . | default .) }}{{ end -}}
{{- $names | uniq | toJson -}}
{{- end -}}

{{- define "kube-queue.enabled" -}}
{{- include "kube-queue.canonical" (list . (.Values.enabledExtensions | default list)) -}}
{{- end -}}

{{/* The kinds that are queued, by whatever mark. */}}
{{- define "kube-queue.queued" -}}
{{- $names := concat (.Values.enabledExtensions | default list) (.Values.annotationExtensions | default list) -}}
{{- include "kube-queue.canonical" (list . $names) -}}
{{- end -}}

{{/*
The kinds that job-extensions gets permissions for, and that have hold policies. Pods only if they are queued: a marked pod waits
at its gate until job-extensions removes it, and pods of other kinds may have the mark by mistake.
*/}}
{{- define "kube-queue.granted" -}}
{{- $queued := include "kube-queue.queued" . | fromJsonArray -}}
{{- if eq .Values.rbac.grant "all" -}}
{{- concat (include "kube-queue.allExtensions" . | fromJsonArray) (has "pod" $queued | ternary (list "pod") list) | toJson -}}
{{- else -}}
{{- $queued | toJson -}}
{{- end -}}
{{- end -}}

{{/* list ROOT BACKEND: whether the controller gets the permissions for a quota backend. */}}
{{- define "kube-queue.backend" -}}
{{- $root := index . 0 -}}
{{- if or (ne $root.Values.rbac.grant "enabled") (eq (include "kube-queue.quotaBackend" $root) (index . 1)) }}true{{ end -}}
{{- end -}}

{{/* Whether the programs get the permissions to count the devices of DeviceClasses. */}}
{{- define "kube-queue.countsClaims" -}}
{{- if or (eq .Values.rbac.grant "all") .Values.devices.classes }}true{{ end -}}
{{- end -}}

{{/*
list ROOT WANTED KIND MINOR: whether to install a policy of this kind: true, false, or auto
(if the API server serves it). Without a cluster, for example in helm template, auto uses
the first minor version of Kubernetes that serves it.
*/}}
{{- define "kube-queue.policies" -}}
{{- $capabilities := (index . 0).Capabilities -}}
{{- $wanted := index . 1 -}}
{{- if eq (toString $wanted) "auto" -}}
{{- $wanted = $capabilities.APIVersions.Has (printf "admissionregistration.k8s.io/v1/%s" (index . 2)) -}}
{{- if not ($capabilities.APIVersions.Has "apps/v1/Deployment") -}}
{{- $wanted = or $wanted (semverCompare (printf ">= 1.%d.0-0" (index . 3)) $capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- if $wanted }}true{{ end -}}
{{- end -}}

{{/*
What holds marked jobs at their creation: policy, webhook, both or none. Auto is policy if the API
server serves MutatingAdmissionPolicy, and webhook otherwise. A webhook that is installed stays, with
the policies beside it: removing it could leave a moment without both, so an administrator decides.
*/}}
{{- define "kube-queue.holdBy" -}}
{{- $by := .Values.holdPolicies.by -}}
{{- $enabled := toString .Values.holdPolicies.enabled -}}
{{- if and (eq $by "auto") (ne $enabled "auto") }}{{ $by = eq $enabled "true" | ternary "policy" "none" }}{{ end -}}
{{- $served := include "kube-queue.policies" (list . "auto" "MutatingAdmissionPolicy" 36) -}}
{{- $live := .Capabilities.APIVersions.Has "apps/v1/Deployment" -}}
{{- if eq $by "auto" -}}
{{- if not $served -}}
webhook
{{- else if lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" "kube-queue-hold" -}}
both
{{- else -}}
policy
{{- end -}}
{{- else -}}
{{- if and $live (not $served) (has $by (list "policy" "both")) -}}
{{- fail (printf "holdPolicies.by=%s: the API server does not serve MutatingAdmissionPolicy v1, which Kubernetes 1.36 does; set holdPolicies.by=webhook" $by) -}}
{{- end -}}
{{ $by }}
{{- end -}}
{{- end -}}

{{/* Whether something holds marked jobs at their creation. */}}
{{- define "kube-queue.canHold" -}}
{{- if ne (include "kube-queue.holdBy" .) "none" }}true{{ end -}}
{{- end -}}

{{/* Whether policies hold jobs, and whether a webhook does. */}}
{{- define "kube-queue.holdsByPolicy" -}}
{{- if has (include "kube-queue.holdBy" .) (list "policy" "both") }}true{{ end -}}
{{- end -}}
{{- define "kube-queue.holdsByWebhook" -}}
{{- if has (include "kube-queue.holdBy" .) (list "webhook" "both") }}true{{ end -}}
{{- end -}}

{{/* Whether policies protect all but units, and limit the programs. */}}
{{- define "kube-queue.guard" -}}
{{- include "kube-queue.policies" (list . "auto" "ValidatingAdmissionPolicy" 30) -}}
{{- end -}}

{{- define "kube-queue.guardUnits" -}}
{{- include "kube-queue.policies" (list . .Values.unitPolicy.enabled "ValidatingAdmissionPolicy" 30) -}}
{{- end -}}

{{/* list KIND NAMES: whether the kind belongs to one of the named extensions. */}}
{{- define "kube-queue.named" -}}
{{- $names := index . 1 -}}
{{- range (index . 0).extensions }}{{ if has .name $names }}true{{ end }}{{ end -}}
{{- end -}}

{{/* list ROOT KIND: whether jobs of the kind are held at their creation. */}}
{{- define "kube-queue.hold" -}}
{{- $root := index . 0 -}}
{{- if include "kube-queue.canHold" $root -}}
{{- include "kube-queue.named" (list (index . 1) (include "kube-queue.granted" $root | fromJsonArray)) -}}
{{- end -}}
{{- end -}}

{{/* The kinds that are queued without a mark in a managed namespace. */}}
{{- define "kube-queue.managed" -}}
{{- $queued := include "kube-queue.queued" . | fromJsonArray -}}
{{- $kinds := include "kube-queue.canonical" (list . .Values.managedNamespaces.kinds) | fromJsonArray -}}
{{- range $kinds -}}
{{- if not (has . $queued) -}}
{{- fail (printf "managedNamespaces.kinds: %s is in neither enabledExtensions nor annotationExtensions, so jobs of this kind would wait forever in a managed namespace; add it to one of them, or remove it from managedNamespaces.kinds" .) -}}
{{- end -}}
{{- end -}}
{{- $kinds | default $queued | toJson -}}
{{- end -}}

{{- define "kube-queue.manage" -}}
{{- if and .Values.managedNamespaces.enabled (include "kube-queue.canHold" .) (include "kube-queue.managed" . | fromJsonArray) }}true{{ end -}}
{{- end -}}

{{/* Whether jobs are queued without a mark, and not only pods, which have policies of their own. */}}
{{- define "kube-queue.manageJobs" -}}
{{- if and (include "kube-queue.manage" .) (without (include "kube-queue.managed" . | fromJsonArray) "pod") }}true{{ end -}}
{{- end -}}

{{/* The API groups of the kinds. */}}
{{- define "kube-queue.groups" -}}
{{- $groups := list -}}
{{- range include "kube-queue.kinds" . | fromJsonArray }}{{ $groups = append $groups .group }}{{ end -}}
{{- $groups | uniq | toJson -}}
{{- end -}}

{{/* A rule for each API group and its versions, with the managed resources. */}}
{{- define "kube-queue.managedRules" -}}
{{- $names := include "kube-queue.managed" . | fromJsonArray -}}
{{- $kinds := include "kube-queue.kinds" . | fromJsonArray -}}
{{- $rules := list -}}
{{- range $group := include "kube-queue.groups" . | fromJsonArray -}}
{{- $versions := list -}}
{{- $resources := dict -}}
{{- range $kinds -}}
{{- $resource := .resource -}}
{{- if eq .group $group -}}
{{- range .extensions -}}
{{- if has .name $names -}}
{{- $served := join ", " .versions -}}
{{- $versions = append $versions $served -}}
{{- $_ := set $resources $served (append (get $resources $served | default list) $resource) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range uniq $versions -}}
{{- $rules = append $rules (printf "- apiGroups: [%s]\n  apiVersions: [%s]\n  operations: [CREATE, UPDATE]\n  resources: [%s]" $group . (get $resources . | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $rules -}}
{{- end -}}

{{/* The permissions of job-extensions on jobs. */}}
{{- define "kube-queue.kindRules" -}}
{{- $names := include "kube-queue.granted" . | fromJsonArray -}}
{{- $kinds := include "kube-queue.kinds" . | fromJsonArray -}}
{{- if without $names "pod" }}
# The jobs of each framework, and their status if job-extensions writes a condition.
{{- end }}
{{- range $group := include "kube-queue.groups" . | fromJsonArray }}
{{- $resources := list }}
{{- $statuses := list }}
{{- $reads := dict }}
{{- range $kinds }}
{{- if include "kube-queue.named" (list . $names) }}
{{- range .reads }}
{{- if eq .group $group }}{{ $_ := set $reads .resource .why }}{{ end }}
{{- end }}
{{- if eq .group $group }}
{{- $resources = append $resources .resource }}
{{- if .showsQueuing }}{{ $statuses = append $statuses (printf "%s/status" .resource) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- if $resources }}
- apiGroups: [{{ $group }}]
  resources: [{{ join ", " $resources }}]
  verbs: [get, list, watch, patch]
{{- end }}
{{- if $statuses }}
- apiGroups: [{{ $group }}]
  resources: [{{ join ", " $statuses }}]
  verbs: [patch]
{{- end }}
{{- range $resource, $why := $reads }}
{{- if not (has $resource $resources) }}
# {{ $why }}
- apiGroups: [{{ $group }}]
  resources: [{{ $resource }}]
  verbs: [list, watch]
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The kinds of job that have units, by API group: a map in CEL. */}}
{{- define "kube-queue.servedKinds" -}}
{{- $kinds := include "kube-queue.kinds" . | fromJsonArray -}}
{{- $lines := list -}}
{{- range $group := include "kube-queue.groups" . | fromJsonArray -}}
{{- $names := list -}}
{{- range $kinds }}{{ if eq .group $group }}{{ $names = append $names (squote .kind) }}{{ end }}{{ end -}}
{{- $lines = append $lines (printf "  '%s': [%s]" $group (join ", " $names)) -}}
{{- end -}}
{{- if include "kube-queue.queuesPods" . }}{{ $lines = concat $lines (list "  '': ['Pod']" "  'kube-queue.dev': ['PodGroup']") }}{{ end -}}
{
{{ join ",\n" $lines }}
}
{{- end -}}
