{{/* The conditions under which a job of a managed namespace is queued, by policy or webhook. */}}
{{- define "kube-queue.managedConditions" -}}
{{- $kinds := include "kube-queue.kinds" . | fromJsonArray -}}
{{- $fenced := eq (include "kube-queue.fence" .) "deny" -}}
- name: not-by-job-extensions
  expression: "request.userInfo.?username.orValue('') != '{{ include "kube-queue.jobExtensionsUser" . }}'"
{{- if $fenced }}
# Policies of the fence refuse those who may not.
- name: no-bypass
  expression: "object.metadata.?annotations[?'kube-queue/bypass'].orValue('') != 'true'"
{{- end }}
# An incomplete job creates no pod; its operator reports what is missing.
- name: has-spec
  expression: >-
    type(object.?spec.orValue('')) == map
    {{- range $maps, $names := include "kube-queue.sameMaps" $kinds | fromJson }}
    && ({{ include "kube-queue.celIsNot" $names }} || (
      {{- $maps | nindent 6 }}))
    {{- end }}
{{- if $fenced }}
# A part of a queued job is held through that job. Every other job is queued, whatever
# controls it: anybody can write an ownerReference.
- name: no-part-of-a-queued-job
  expression: >-
    !{{ include "kube-queue.celByOperator" (list . $kinds) | nindent 4 | trim }}
{{- else }}
# A part is held through its job. But each job of any other controller is queued.
- name: no-part-of-a-job
  expression: >-
    {{- $first := true }}
    {{- range $kinds }}{{ if .partOf }}
    {{ if not $first }}&& {{ end }}(object.kind != '{{ .kind }}' || !{{ include "kube-queue.celPart" . | nindent 4 | trim }})
    {{- $first = false }}
    {{- end }}{{ end }}
{{- end }}
- name: no-other-queue
  expression: "!object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].hasValue()"
# In a kind without such a field, it may have any value.
- name: managed-by-its-controller
  expression: >-
    {{- include "kube-queue.celAllManagedBy" $kinds | nindent 4 }}
# Only a job that was queued itself is held again. The parts of jobs have no annotation.
- name: new-or-waits
  expression: >-
    request.operation == 'CREATE' || (
      oldObject.metadata.?annotations[?'kube-queue/managed'].orValue('') == 'true'
      && ({{ include "kube-queue.celSuspended" (list $kinds "oldObject") | nindent 8 | trim }})
      && ({{ if $fenced }}!({{ include "kube-queue.celSuspended" (list $kinds "object") | nindent 8 | trim }})
        || {{ end }}(oldObject.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].orValue('') == 'true'
          && (!object.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].hasValue()
            || object.metadata.annotations['scheduling.x-k8s.io/suspend'] == 'true' && object.metadata.?annotations[?'kube-queue/managed'].orValue('') != 'true'))))
{{- end -}}

{{/*
The policy of the managed namespaces, and its binding. It marks and suspends a job in one step: the API server calls
mutating policies in no defined order, and does not evaluate again one that did not match.
*/}}
{{- define "kube-queue.managedPolicy" -}}
{{- $kinds := include "kube-queue.kinds" . | fromJsonArray -}}
{{- $fenced := eq (include "kube-queue.fence" .) "deny" -}}
# In a namespace with label kube-queue/managed: "true", every new job of the kinds
# listed below is queued, whatever its mark: it gets the mark, and an annotation that
# records the managed namespace.
#
# This policy also suspends the job, in the same way as the hold policies. Those act only
# on jobs that have the mark when they are evaluated. The order of policies is undefined,
# and a policy that did not match is not evaluated again.
#
# An update keeps the mark and the suspension of a waiting job: a manifest that is applied
# again may contain neither.
{{- if $fenced }} A user who resumes a job that was suspended by hand
# queues it again.
{{- end }}
#
# Only kinds in --enabled-extensions of job-extensions are listed: jobs of other kinds
# would wait forever.
#
# No match condition may fail on any object, because a failure rejects the object. So
# fields are read by optional chaining only.
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: kube-queue-managed-namespace
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
  annotations:
    {{- include "kube-queue.graceAnnotations" . | nindent 4 }}
spec:
  failurePolicy: Fail
  # A webhook that runs later may remove the suspend field.
  reinvocationPolicy: IfNeeded
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    {{- include "kube-queue.managedRules" . | nindent 4 }}
  matchConditions:
  {{- include "kube-queue.managedConditions" . | trim | nindent 2 }}
  variables:
  # The fence refuses another value of the mark.
  - name: marks
    expression: >-
      request.operation == 'CREATE' || !object.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].hasValue()
      || object.metadata.annotations['scheduling.x-k8s.io/suspend'] == oldObject.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].orValue('')
  # The same as in the hold policies. Other jobs get only the mark, and job-extensions
  # reports InvalidRequest.
  - name: canBeSuspended
    expression: >-
      {{- include "kube-queue.celHoldable" $kinds | nindent 6 }}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        (object.metadata.?annotations.hasValue() ? [] : [
          JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}
        ]) + [
          JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('kube-queue/managed'), value: 'true'}
        ] + (!variables.marks ? [] : [
          JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('scheduling.x-k8s.io/suspend'), value: 'true'}
        ])
        {{- if $fenced }} + object.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false)).map(o,
          JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('kube-queue/not-part-of'), value: o.uid})
        {{- end }}
  # A copy of a released job is a new job.
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        !{{ include "kube-queue.celCopy" . }} ? [] : [
          JSONPatch{op: 'remove', path: '/metadata/annotations/' + jsonpatch.escapeKey('kube-queue/released')}
        ]
  # If the job was suspended by hand, it is queued again.
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        !{{ include "kube-queue.celReleasedBefore" . }} || ({{ include "kube-queue.celSuspended" (list $kinds "object") | nindent 10 | trim }}) ? [] : [
          {{ include "kube-queue.resumedPatch" . }}
        ]
  # The same as in the hold policies of these kinds.
  {{- range $patch, $names := include "kube-queue.samePatch" $kinds | fromJson }}
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        {{ include "kube-queue.celIsNot" $names }} || !variables.canBeSuspended ? [] :
        {{- $patch | nindent 8 }}
  {{- end }}
  {{- range $kind := $kinds }}
  {{- range include "kube-queue.settings" (list . "noted") | fromJsonArray }}
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        object.kind != '{{ $kind.kind }}' || !variables.canBeSuspended || {{ include "kube-queue.celUnset" (list . "!=") }} ? [] : [
          {{- include "kube-queue.notedPatch" . | nindent 10 }}
        ]
  {{- end }}
  {{- end }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: kube-queue-managed-namespace
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  policyName: kube-queue-managed-namespace
  matchResources:
    namespaceSelector:
      matchLabels:
        kube-queue/managed: "true"
{{- end -}}

{{/* list KINDS ROOT: whether the object, whose spec may be anything, is suspended. */}}
{{- define "kube-queue.celSuspended" -}}
{{- $root := index . 1 -}}
{{- $same := dict -}}
{{- range index . 0 }}{{ $_ := set $same .suspendPath (append (get $same .suspendPath | default list) .kind) }}{{ end -}}
{{- $terms := list -}}
{{- range $path, $names := $same -}}
{{- $parent := include "kube-queue.parent" $path -}}
{{- $maps := printf "type(%s.?spec.orValue('')) == map" $root -}}
{{- if ne $parent "spec" }}{{ $maps = printf "%s && type(%s.%s.orValue({})) == map" $maps $root (replace "." ".?" $parent) }}{{ end -}}
{{- $terms = append $terms (printf "%s%s && %s.%s.orValue(false) == true" (eq (len $same) 1 | ternary "" (printf "object.kind in ['%s'] && " (join "', '" $names))) $maps $root (replace "." ".?" $path)) -}}
{{- end -}}
({{ join ")\n|| (" $terms }})
{{- end -}}

{{/* Whether the object is of none of the named kinds. */}}
{{- define "kube-queue.celIsNot" -}}
{{- if eq (len .) 1 -}}
object.kind != '{{ first . }}'
{{- else -}}
!(object.kind in ['{{ join "', '" . }}'])
{{- end -}}
{{- end -}}

{{/* Names of kinds by the condition that their fields are maps. */}}
{{- define "kube-queue.sameMaps" -}}
{{- $same := dict -}}
{{- range . -}}
{{- if .maps -}}
{{- $terms := list -}}
{{- range .maps }}{{ $terms = append $terms (include "kube-queue.celMap" .) }}{{ end -}}
{{- $terms = join "\n&& " $terms -}}
{{- $_ := set $same $terms (append (get $same $terms | default list) .kind) -}}
{{- end -}}
{{- end -}}
{{- $same | toJson -}}
{{- end -}}

{{/* Names of kinds by the patch that suspends them. */}}
{{- define "kube-queue.samePatch" -}}
{{- $same := dict -}}
{{- range . -}}
{{- $patch := include "kube-queue.suspendPatch" . -}}
{{- $_ := set $same $patch (append (get $same $patch | default list) .kind) -}}
{{- end -}}
{{- $same | toJson -}}
{{- end -}}

{{/* Whether the object can be suspended, for kinds with objects that cannot. */}}
{{- define "kube-queue.celHoldable" -}}
{{- $terms := list -}}
{{- range . -}}
{{- if .holdable -}}
{{- $expressions := list -}}
{{- range .holdable }}{{ $expressions = append $expressions (replace "\n" "\n  " .expression) }}{{ end -}}
{{- $terms = append $terms (printf "(object.kind != '%s' || (\n  %s))" .kind (join "\n  && " $expressions)) -}}
{{- end -}}
{{- end -}}
{{- join "\n&& " $terms | default "true" -}}
{{- end -}}

{{/* Whether managedBy, if the kind has it, names one of the operators of all kinds. */}}
{{- define "kube-queue.celAllManagedBy" -}}
{{- $values := list "''" -}}
{{- $fields := dict -}}
{{- range $kind := . -}}
{{- $field := printf "%s.?managedBy" (include "kube-queue.cel" (include "kube-queue.parent" .suspendPath)) -}}
{{- range .extensions -}}
{{- if .managedBy -}}
{{- $values = append $values (squote .managedBy) | uniq -}}
{{- $_ := set $fields $field (append (get $fields $field | default list) $kind.kind | uniq) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $terms := list -}}
{{- range $field, $names := $fields -}}
{{- $terms = append $terms (printf "(%s || %s.orValue('') in [\n  %s])" (include "kube-queue.celIsNot" $names) $field (join ", " $values)) -}}
{{- end -}}
{{- join "\n&& " $terms | default "true" -}}
{{- end -}}
