{{/*
The policy that holds the jobs of a kind, from the data in files/kinds.json. Paths have the
form spec.runPolicy.suspend. The policy knows no flags: a job may be created before any program runs.
*/}}

{{/* A field of the object, or of another root: object.spec.?runPolicy.?suspend. */}}
{{- define "kube-queue.cel" -}}
object.{{ replace "." ".?" . }}
{{- end -}}

{{/* The path of the parent of a field. */}}
{{- define "kube-queue.parent" -}}
{{ regexReplaceAll "[.][^.]*$" . "" }}
{{- end -}}

{{/* The value of an unset field, and the value that it is set to. */}}
{{- define "kube-queue.celZero" -}}
{{ kindIs "string" . | ternary "''" "false" }}
{{- end -}}
{{- define "kube-queue.celValue" -}}
{{- if kindIs "string" . }}'{{ . }}'{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* Whether a setting is unset, or with "!=" set. */}}
{{- define "kube-queue.celUnset" -}}
{{- $setting := index . 0 -}}
{{- $zero := include "kube-queue.celZero" $setting.value -}}
{{ include "kube-queue.cel" $setting.path }}{{ with $setting.olderPath }}.or({{ include "kube-queue.cel" . }}){{ end }}.orValue({{ $zero }}) {{ index . 1 }} {{ $zero }}
{{- end -}}

{{- define "kube-queue.add" -}}
JSONPatch{op: 'add', path: '/{{ replace "." "/" (index . 0) }}', value: {{ index . 1 }}}
{{- end -}}

{{/* The settings that are recorded in an annotation, and with "" those that are not. */}}
{{- define "kube-queue.settings" -}}
{{- $found := list -}}
{{- $noted := index . 1 -}}
{{- range (index . 0).sets }}{{ if eq (not .annotation) (not $noted) }}{{ $found = append $found . }}{{ end }}{{ end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Whether the object is a new copy of a released job. */}}
{{- define "kube-queue.celCopy" -}}
(request.operation == 'CREATE' && object.metadata.?annotations[?'kube-queue/released'].hasValue())
{{- end -}}

{{/* Whether the object is an update of a job that was released before. */}}
{{- define "kube-queue.celReleasedBefore" -}}
(request.operation == 'UPDATE' && oldObject.metadata.?annotations[?'kube-queue/released'].hasValue())
{{- end -}}

{{- define "kube-queue.resumedPatch" -}}
JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('kube-queue/resumed'), value: 'true'}
{{- end -}}

{{/* Whether the object is a part of a job, by its controller: an operator of such a kind creates such parts. */}}
{{- define "kube-queue.celPart" -}}
object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && (
  {{- range $i, $owner := .partOf }}
  {{ if $i }}|| {{ end }}(o.?kind.orValue('') == '{{ $owner.kind }}' && o.?apiVersion.orValue('').startsWith('{{ $owner.group }}/'))
  {{- end }}))
{{- end -}}

{{/* A field, other than spec, that must be a map or absent. */}}
{{- define "kube-queue.celMap" -}}
type({{ include "kube-queue.cel" . }}.orValue({})) == map
{{- end -}}

{{/* The patch of the suspend field and of the settings without an annotation. */}}
{{- define "kube-queue.suspendPatch" -}}
{{- $kind := . -}}
{{- $settings := include "kube-queue.settings" (list . "") | fromJsonArray -}}
{{- $parent := include "kube-queue.parent" .suspendPath -}}
{{- $suspend := include "kube-queue.add" (list .suspendPath "true") -}}
{{- if and (eq $parent "spec") (not $settings) -}}
[{{ $suspend }}]
{{- else -}}
{{- if ne $parent "spec" -}}
({{ include "kube-queue.cel" $parent }}.hasValue() ? [] : [
  {{ include "kube-queue.add" (list $parent "{}") }}
]) + {{ end -}}
[
  {{ $suspend }}
]
{{- range $settings }} + ({{ include "kube-queue.celUnset" (list . "!=") }} ? [] : [
  {{ include "kube-queue.add" (list .path (include "kube-queue.celValue" .value)) }}
])
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The patch of a setting and of the annotation that records it. */}}
{{- define "kube-queue.notedPatch" -}}
{{ include "kube-queue.add" (list .path (include "kube-queue.celValue" .value)) }},
JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('{{ .annotation }}'), value: 'false'}
{{- end -}}

{{/* The comment of a setting. */}}
{{- define "kube-queue.why" -}}
{{- $why := .why -}}
{{- with .olderPath }}{{ $why = printf "%s It may also be in %s." $why . }}{{ end -}}
{{- if .annotation }}{{ $why = printf "%s So this policy sets %s and records the previous value in an annotation: job-extensions restores it with the release." $why (.path | splitList "." | last) }}{{ end -}}
# {{ wrap 82 $why | replace "\n" "\n# " }}
{{- end -}}

{{/* list ROOT KIND: the rule that selects the jobs of the kind. */}}
{{- define "kube-queue.holdRule" -}}
{{- $kind := index . 1 -}}
- apiGroups: [{{ $kind.group }}]
  apiVersions: [{{ include "kube-queue.versions" (list $kind (include "kube-queue.granted" (index . 0) | fromJsonArray)) }}]
  operations: [CREATE, UPDATE]
  resources: [{{ $kind.resource }}]
{{- end -}}

{{/* list ROOT KIND: the conditions under which a job of the kind is held, by policy or webhook. */}}
{{- define "kube-queue.holdConditions" -}}
{{- $kind := index . 1 -}}
{{- $suspend := include "kube-queue.cel" $kind.suspendPath -}}
{{- $itself := and $kind.markedBySuspend $kind.sets -}}
# It releases jobs, whose mark may stay.
- name: not-by-job-extensions
  expression: "request.userInfo.?username.orValue('') != '{{ include "kube-queue.jobExtensionsUser" (index . 0) }}'"
# In a managed namespace, a policy of the fence refuses those who may not.
- name: no-bypass
  expression: "object.metadata.?annotations[?'kube-queue/bypass'].orValue('') != 'true'"
{{- if $itself }}
# Marked by the annotation, or by suspend if the annotation does not opt out. After a
# release the annotation is "false", and suspend then means a suspension by hand.
- name: marked
  expression: >-
    object.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].orValue('') == 'true'
    || ({{ replace "object." "object.?" $suspend }}.orValue(false) == true && (
      !object.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].hasValue()
      || object.metadata.?annotations[?'kube-queue/released'].hasValue()))
    || {{ include "kube-queue.celCopy" . }}
{{- else }}
# A copy of a released job is a new job.
- name: marked
  expression: >-
    object.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].orValue('') == 'true'
    || {{ include "kube-queue.celCopy" . }}
{{- end }}
{{- if not $kind.native }}
# An incomplete {{ $kind.kind }} creates no pod; its operator reports what is missing.
- name: has-spec
  {{- if gt (len (default list $kind.maps)) 1 }}
  expression: >-
    type(object.?spec.orValue('')) == map
    {{- range $kind.maps }}
    && {{ include "kube-queue.celMap" . }}
    {{- end }}
  {{- else }}
  expression: "type(object.?spec.orValue('')) == map{{ range $kind.maps }} && {{ include "kube-queue.celMap" . }}{{ end }}"
  {{- end }}
{{- end }}
{{- if $kind.partOf }}
# A part is held through its job. But each {{ $kind.kind }} of any other controller is queued.
- name: no-part-of-a-job
  expression: >-
    !{{ include "kube-queue.celPart" $kind | nindent 4 | trim }}
{{- end }}
- name: no-other-queue
  expression: "!object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].hasValue()"
{{- with include "kube-queue.celManagedBy" $kind }}
- name: managed-by-its-{{ $kind.native | ternary "controller" "operator" }}
  expression: >-
    {{- . | nindent 4 }}
{{- end }}
{{- if $kind.holdable }}
# The operator rejects these if they are suspended. They are not changed, and
# job-extensions reports InvalidRequest.
{{- range $kind.holdable }}
- name: {{ .name }}
  {{- if contains "\n" .expression }}
  expression: >-
    {{- .expression | nindent 4 }}
  {{- else }}
  expression: "{{ .expression }}"
  {{- end }}
{{- end }}
{{- end }}
# An update only keeps held jobs held: applying a manifest again does not stop a running job.
{{- if $itself }}
# A user who suspends a {{ $kind.kind }} by hand, or applies a manifest to a suspended
# {{ $kind.kind }}, need not set {{ range $i, $setting := $kind.sets }}{{ if $i }} and {{ end }}{{ .path | splitList "." | last }}{{ end }}.
{{- end }}
- name: new-or-held
  expression: >-
    request.operation == 'CREATE' || (
      oldObject.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].orValue('') == 'true'
      {{- if $kind.native }}
      && {{ replace "object." "oldObject." $suspend }}.orValue(false)
      && !{{ $suspend }}.orValue(false))
      {{- else }}
      && {{ replace "object." "oldObject.?" $suspend }}.orValue(false) == true
      && {{ $suspend }}.orValue(false) != true{{ if not $itself }}){{ end }}
      {{- end }}
    {{- if $itself }}
    ) || (
      {{ $suspend }}.orValue(false) == true
      {{- range $i, $setting := $kind.sets }}
      && {{ include "kube-queue.celUnset" (list . "==") }}
      {{- end }})
    {{- end }}
{{- end -}}

{{/* list ROOT KIND: the policy, and its binding. */}}
{{- define "kube-queue.holdPolicy" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
{{- $name := printf "kube-queue-hold-%s" (lower $kind.kind) -}}
{{- $suspend := include "kube-queue.cel" $kind.suspendPath -}}
{{- $noted := include "kube-queue.settings" (list $kind "noted") | fromJsonArray -}}
{{- $itself := and $kind.markedBySuspend $kind.sets -}}
# Holds {{ $kind.kind }}s that have only the annotation: the policy sets suspend at their
# creation, so that no pod is created before the release.
{{- if $itself }}
# {{ $kind.kind }}s with suspend get the other fields that a suspended {{ $kind.kind }} requires.
{{- else if $kind.markedBySuspend }}
# {{ $kind.kind }}s with suspend are held without this policy.
{{- end }}
{{- with $kind.needs }}
# They require {{ . }}.
{{- end }}
#
# No match condition may fail on any {{ $kind.kind }}: a failure would reject objects of
# users who do not use kube-queue. So fields are read by optional chaining only.
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "kube-queue.labels" $root | nindent 4 }}
spec:
  failurePolicy: Fail
  # A webhook that runs later may remove the suspend field. A webhook that adds the
  # annotation runs too late: a policy that did not match is not evaluated again.
  reinvocationPolicy: IfNeeded
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    {{- include "kube-queue.holdRule" . | nindent 4 }}
  matchConditions:
  {{- include "kube-queue.holdConditions" . | trim | nindent 2 }}
  mutations:
  # A copy of a released job gets its mark back.
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        !{{ include "kube-queue.celCopy" . }} ? [] : [
          JSONPatch{op: 'remove', path: '/metadata/annotations/' + jsonpatch.escapeKey('kube-queue/released')},
          JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('scheduling.x-k8s.io/suspend'), value: 'true'}
        ]
  # If the job was suspended by hand, it is queued again.
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        {{ $suspend }}.orValue(false) == true || !{{ include "kube-queue.celReleasedBefore" . }} ? [] : [
          {{ include "kube-queue.resumedPatch" . }}
        ]
  {{- $parent := include "kube-queue.parent" $kind.suspendPath }}
  {{- if ne $parent "spec" }}
  # {{ $parent | splitList "." | last }} may be absent.
  {{- end }}
  {{- range include "kube-queue.settings" (list $kind "") | fromJsonArray }}
  {{- include "kube-queue.why" . | nindent 2 }}
  {{- end }}
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        {{- include "kube-queue.suspendPatch" $kind | nindent 8 }}
  {{- range $noted }}
  {{- include "kube-queue.why" . | nindent 2 }}
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        {{ include "kube-queue.celUnset" (list . "!=") }} ? [] : (
          object.metadata.?annotations.hasValue() ? [] : [
            JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}
          ]
        ) + [
          {{- include "kube-queue.notedPatch" . | nindent 10 }}
        ]
  {{- end }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "kube-queue.labels" $root | nindent 4 }}
spec:
  policyName: {{ $name }}
{{- end -}}

{{/* Whether managedBy, if the kind has it, names the kind's own operator. */}}
{{- define "kube-queue.celManagedBy" -}}
{{- $group := .group -}}
{{- $field := printf "%s.?managedBy" (include "kube-queue.cel" (include "kube-queue.parent" .suspendPath)) -}}
{{- $values := list -}}
{{- range .extensions }}{{ $values = append $values (.managedBy | default "") }}{{ end -}}
{{- if gt (len (uniq $values)) 1 -}}
{{ $field }}.orValue('') in
  ['', {{ range initial .extensions }}object.apiVersion == '{{ $group }}/{{ first .versions }}' ? '{{ .managedBy }}' : {{ end }}'{{ (last .extensions).managedBy }}']
{{- else if first $values -}}
{{ $field }}.orValue('') in ['', '{{ first $values }}']
{{- end -}}
{{- end -}}

{{/* list KIND NAMES: the versions of the named extensions of the kind. */}}
{{- define "kube-queue.versions" -}}
{{- $names := index . 1 -}}
{{- $versions := list -}}
{{- range (index . 0).extensions }}{{ if has .name $names }}{{ $versions = concat $versions .versions }}{{ end }}{{ end -}}
{{- $versions | uniq | join ", " -}}
{{- end -}}
