{{/* The policy of the managed namespaces, and its binding. */}}
{{- define "kube-queue.managedPolicy" -}}
{{- $kinds := include "kube-queue.kinds" . | fromJsonArray -}}
# In a namespace with label kube-queue/managed "true" every new job of the kinds
# listed below is queued, whatever its mark says: it gets the mark, and a note of
# where it came from.
#
# It is suspended here as well, as the hold policies would do it. They act on what
# had its mark when they were asked; in which order policies are asked nobody can
# say, and one that did not match then is not asked again.
#
# Only kinds that are in job-extensions' --enabled-extensions stand here: jobs of
# another kind would wait for ever.
#
# No match condition may fail on any object, which would refuse it. So fields are
# read by optional chaining only.
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: kube-queue-managed-namespace
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  failurePolicy: Fail
  # A webhook that runs later may take the suspend field away.
  reinvocationPolicy: IfNeeded
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    {{- include "kube-queue.managedRules" . | nindent 4 }}
  matchConditions:
  # A half-written job makes no pod; what it lacks is for its operator to say.
  - name: has-spec
    expression: >-
      type(object.?spec.orValue('')) == map
      {{- range $maps, $names := include "kube-queue.sameMaps" $kinds | fromJson }}
      && ({{ include "kube-queue.celIsNot" $names }} || (
        {{- $maps | nindent 8 }}))
      {{- end }}
  # A child is held by holding its parent; but what is made on a schedule queues each
  # for itself.
  - name: no-controller-owner
    expression: >-
      !object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false)
        {{- range $kind := $kinds }}{{ range .owners }}
        && !(object.kind == '{{ $kind.kind }}' && {{ include "kube-queue.celOwner" . }})
        {{- end }}{{ end }})
  - name: no-other-queue
    expression: "!object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].hasValue()"
  # A kind that has no such field may hold anything in its place.
  - name: managed-by-its-controller
    expression: >-
      {{- include "kube-queue.celAllManagedBy" $kinds | nindent 6 }}
  variables:
  # As in the hold policies. Others get the mark alone, and job-extensions says
  # InvalidRequest.
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
          JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('scheduling.x-k8s.io/suspend'), value: 'true'},
          JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('kube-queue/managed'), value: 'true'}
        ]
  # As in the hold policies of these kinds.
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

{{/* Whether the object is of none of the kinds, by their names. */}}
{{- define "kube-queue.celIsNot" -}}
{{- if eq (len .) 1 -}}
object.kind != '{{ first . }}'
{{- else -}}
!(object.kind in ['{{ join "', '" . }}'])
{{- end -}}
{{- end -}}

{{/* Names of kinds by what must be a map in them, for those that have any such. */}}
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

{{/* Whether the object can be suspended, for those kinds that have some that cannot. */}}
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

{{/* Whether managedBy, where its kind has it, names one of the operators of all kinds. */}}
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
