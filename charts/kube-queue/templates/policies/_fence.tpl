{{/*
The fence of managed namespaces: policies that refuse what would run a job past the queue.
*/}}

{{/*
list ROOT KINDS: whether the object, of one of the kinds, is a part of a queued job and the user operates jobs of that
kind, that is, has the verb operate on queueunits, by the name of the kind, such as rayjobs.ray.io. An operator creates
only parts of its own kinds. An object has one controller, so this asks once, and only about objects with such a controller.
An operator also starts what a user has made in the name of its job. That is no part, and is queued itself: see kube-queue/not-part-of.
*/}}
{{- define "kube-queue.celByOperator" -}}
{{- $managed := list -}}
{{- $names := include "kube-queue.managed" (index . 0) | fromJsonArray -}}
{{- range include "kube-queue.kinds" (index . 0) | fromJsonArray -}}
{{- if include "kube-queue.named" (list . $names) }}{{ $managed = append $managed .kind }}{{ end -}}
{{- end -}}
{{- $of := list -}}
{{- range index . 1 -}}
{{- $owners := list -}}
{{- range .partOf }}{{ if has .kind $managed }}{{ $owners = append $owners (printf "'%s.%s'" .resource .group) }}{{ end }}{{ end -}}
{{- if $owners }}{{ $of = append $of (printf "'%s': [%s]" .kind (join ", " $owners)) }}{{ end -}}
{{- end -}}
{{- if not $of -}}
false
{{- else -}}
object.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false)
  && o.?uid.orValue('') != (request.operation == 'CREATE' ? object : oldObject).metadata.?annotations[?'kube-queue/not-part-of'].orValue(''))
.map(o, o.?kind.orValue('').lowerAscii() + 's.' + o.?apiVersion.orValue('').split('/')[0])
.exists(kind, kind in {{ printf "{%s}" (join ", " $of) }}[?object.kind].orValue([])
  && authorizer.group('scheduling.x-k8s.io').resource('queueunits').namespace(request.namespace).name(kind).check('operate').allowed())
{{- end -}}
{{- end -}}

{{/* The operators: those that are listed, and until the next minor version those that an upgrade found. */}}
{{- define "kube-queue.operators" -}}
{{- $listed := .Values.managedNamespaces.operators -}}
{{- if and $listed (kindIs "map" $listed) -}}
{{- fail (printf "managedNamespaces.operators is a list: write - {namespace: NAMESPACE, serviceAccount: NAME, kinds: [%s]} for each ServiceAccount" (keys $listed | sortAlpha | join ", ")) -}}
{{- end -}}
{{- $listed | default (include "kube-queue.foundOperators" . | fromJsonArray) | toJson -}}
{{- end -}}

{{/*
An upgrade from a version that trusted operators by their names lists those that have a ClusterRoleBinding, if nobody
lists any. Only administrators create these bindings, but whoever creates a namespace chooses the names in it.
*/}}
{{- define "kube-queue.foundOperators" -}}
{{- $found := dict -}}
{{- if and (not .Values.managedNamespaces.operators) (eq (include "kube-queue.graceIn" (list . "kube-queue/operators-found-in")) (include "kube-queue.minorVersion" .)) -}}
{{- $bound := list -}}
{{- range (lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "").items }}{{ range .subjects -}}
{{- if eq .kind "ServiceAccount" }}{{ $bound = append $bound (printf "system:serviceaccount:%s:%s" .namespace .name) }}{{ end -}}
{{- end }}{{ end -}}
{{- range include "kube-queue.kinds" . | fromJsonArray }}{{ range $extension := .extensions }}{{ range .operators -}}
{{- if has . $bound }}{{ $_ := set $found . (append (get $found . | default list) $extension.name) }}{{ end -}}
{{- end }}{{ end }}{{ end -}}
{{- end -}}
{{- $operators := list -}}
{{- range $user, $kinds := $found -}}
{{- $account := splitList ":" $user -}}
{{- $operators = append $operators (dict "namespace" (index $account 2) "serviceAccount" (index $account 3) "kinds" $kinds) -}}
{{- end -}}
{{- $operators | toJson -}}
{{- end -}}

{{- define "kube-queue.jobExtensionsUser" -}}
system:serviceaccount:{{ include "kube-queue.namespace" . }}:job-extensions
{{- end -}}

{{/*
The garbage collector. It has no ServiceAccount of its own if kube-controller-manager runs without
use-service-account-credentials.
*/}}
{{- define "kube-queue.garbageCollectors" -}}
'system:serviceaccount:kube-system:generic-garbage-collector', 'system:kube-controller-manager'
{{- end -}}

{{/* The Job controller, a part of Kubernetes. */}}
{{- define "kube-queue.jobControllers" -}}
'system:serviceaccount:kube-system:job-controller', 'system:kube-controller-manager'
{{- end -}}

{{- define "kube-queue.controllerUser" -}}
system:serviceaccount:{{ include "kube-queue.namespace" . }}:kube-queue-controller
{{- end -}}

{{/*
What the fence does: deny, warn or off. Unset, it denies; but when an upgrade adds it to an
installation that had managed namespaces already, it warns until the next minor version.
*/}}
{{- define "kube-queue.fence" -}}
{{- $wanted := .Values.managedNamespaces.fence -}}
{{- if not (include "kube-queue.manage" .) -}}
off
{{- else if $wanted -}}
{{ $wanted }}
{{- else if eq (include "kube-queue.graceIn" (list . "kube-queue/fence-warns-in")) (include "kube-queue.minorVersion" .) -}}
warn
{{- else -}}
deny
{{- end -}}
{{- end -}}

{{- define "kube-queue.minorVersion" -}}
{{ regexFind "^[0-9]+[.][0-9]+" .Chart.Version }}
{{- end -}}

{{/*
list ROOT ANNOTATION: the minor version in which a rule is not in force because an upgrade added it; empty if
the rule is in force. The policy of managed namespaces, or the webhook configuration, keeps it in the
annotation, so that an upgrade within the minor version changes nothing.
*/}}
{{- define "kube-queue.graceIn" -}}
{{- $installed := or (lookup "admissionregistration.k8s.io/v1" "MutatingAdmissionPolicy" "" "kube-queue-managed-namespace")
  (lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" "kube-queue-hold") -}}
{{- if $installed -}}
{{- $annotations := $installed.metadata.annotations | default dict -}}
{{- if hasKey $annotations (index . 1) -}}
{{ get $annotations (index . 1) }}
{{- else -}}
{{ include "kube-queue.minorVersion" (index . 0) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The annotations of graceIn. Helm reads them at the next upgrade. */}}
{{- define "kube-queue.graceAnnotations" -}}
# Helm reads these: in this minor version, a fence that is new to an installation warns by default.
kube-queue/fence-warns-in: "{{ if not .Values.managedNamespaces.fence }}{{ include "kube-queue.graceIn" (list . "kube-queue/fence-warns-in") }}{{ end }}"
# In this minor version, operators that were trusted by their names still are if none are listed.
kube-queue/operators-found-in: "{{ if not .Values.managedNamespaces.operators }}{{ include "kube-queue.graceIn" (list . "kube-queue/operators-found-in") }}{{ end }}"
{{- end -}}

{{/* list ROOT KIND: the fence of a kind, and its binding. */}}
{{- define "kube-queue.fencePolicy" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
{{- $fence := $kind.fence -}}
{{- $name := printf "kube-queue-fence-%s" (lower $kind.kind) -}}
{{- $versions := include "kube-queue.versions" (list $kind (include "kube-queue.managed" $root | fromJsonArray)) -}}
# In a namespace with label kube-queue/managed: "true", nobody runs a {{ $kind.kind }} without quota:
# only job-extensions unsuspends it, and a released {{ $kind.kind }} does not grow. The operators of
# queued jobs may create and unsuspend the parts of their jobs.
#
# Exempt is a request whose object has the annotation kube-queue/bypass: "true", if the
# user has the verb "bypass" on queueunits. This is checked only for a request that would
# be refused.
#
# No expression may fail on any {{ $kind.kind }}, because a failure rejects the request. So fields
# are read by optional chaining only, and types are checked.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "kube-queue.labels" $root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    - apiGroups: [{{ $kind.group }}]
      apiVersions: [{{ $versions }}]
      operations: [CREATE, UPDATE, DELETE]
      resources: [{{ $kind.resource }}]
  matchConditions:
  - name: not-by-job-extensions
    expression: "request.userInfo.?username.orValue('') != '{{ include "kube-queue.jobExtensionsUser" $root }}'"
  # Jobs that were assigned to another queue before the namespace was managed.
  - name: not-in-another-queue-before
    expression: "request.operation == 'CREATE' || !oldObject.metadata.?labels[?'kueue.x-k8s.io/queue-name'].hasValue()"
  variables:
  # A {{ $kind.kind }} that its operator cannot read does not run.
  - name: held
    expression: >-
      !({{ $fence.readable }})
      || {{ $fence.suspended }}
  - name: ran
    expression: >-
      request.operation != 'CREATE' && {{ $fence.wasReadable }}
      && !({{ $fence.wasSuspended }})
  # A part of a queued job, of which its operator takes care. Some operators copy the
  # annotations of a job to its parts.
  - name: byOperator
    expression: >-
      {{- include "kube-queue.celByOperator" (list $root (list $kind)) | nindent 6 }}
  {{- if $kind.partOf }}
  # Its operator starts a part at the size that it has then, so nobody else enlarges it, even while it is suspended.
  - name: part
    expression: >-
      request.operation == 'UPDATE' && {{ $fence.readable }} && {{ $fence.wasReadable }}
      && {{ include "kube-queue.celPart" $kind | nindent 6 | trim }}
      && !object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false)
        && o.?uid.orValue('') == oldObject.metadata.?annotations[?'kube-queue/not-part-of'].orValue(''))
      && !variables.byOperator
  {{- end }}
  - name: orphans
    expression: >-
      request.operation == 'DELETE' && (
        request.?options.?propagationPolicy.orValue('') == 'Orphan' || request.?options.?orphanDependents.orValue(false)
        || (request.?options.?propagationPolicy.orValue('') == '' && !request.?options.?orphanDependents.hasValue()
          && {{ if eq $kind.group "batch" }}!oldObject.metadata.?finalizers.orValue([]).exists(f, f == 'foregroundDeletion'){{ else }}oldObject.metadata.?finalizers.orValue([]).exists(f, f == 'orphan'){{ end }}))
  - name: ended
    expression: >-
      {{- $fence.ended | nindent 6 }}
  # How many entries the policy of job-extensions compares, within the costs that the API server allows.
  - name: entries
    expression: >-
      [oldObject, object].map(x, x == null ? 0 : x.metadata.?labels.orValue({}).size() + x.metadata.?annotations.orValue({}).size()
      {{- if eq $kind.kind "Workflow" }}
        + [x.?spec.orValue({}), x.?status.orValue({})].map(f, type(f) == map ? f.size() : 0).sum()
      {{- end }})
  - name: mayBypass
    expression: >-
      (request.operation == 'DELETE' ? oldObject : object).metadata.?annotations[?'kube-queue/bypass'].orValue('') == 'true'
      && authorizer.group('scheduling.x-k8s.io').resource('queueunits').namespace(request.namespace).check('bypass').allowed()
  validations:
  # The first rule that fails gives the message.
  - expression: >-
      request.operation == 'DELETE'
      || !object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].hasValue() || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: label kueue.x-k8s.io/queue-name assigns the {{ $kind.kind }} to another queue. Remove the
      label, or use a namespace without label kube-queue/managed.
    reason: Forbidden
  - expression: >-
      request.operation == 'DELETE' || object.metadata.?annotations[?'kube-queue/bypass'].orValue('') != 'true'
      || (request.operation == 'UPDATE' && oldObject.metadata.?annotations[?'kube-queue/bypass'].orValue('') == 'true')
      || variables.byOperator || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: the annotation kube-queue/bypass requires the verb "bypass" on
      queueunits.scheduling.x-k8s.io, which ClusterRole kube-queue-bypass has. Remove the annotation, or ask an administrator.
    reason: Forbidden
  - expression: >-
      request.operation == 'DELETE' || variables.held || variables.ran || variables.byOperator || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: only kube-queue starts a {{ $kind.kind }}. Leave {{ $kind.suspendPath }} true and the annotation
      scheduling.x-k8s.io/suspend "true"; kube-queue starts the {{ $kind.kind }} when its quota has room.
      {{- with $kind.holdable }} A {{ $kind.kind }} that cannot be suspended cannot run here.{{ end }}
      {{- if include "kube-queue.celManagedBy" $kind }} A {{ $kind.kind }} whose managedBy names another controller cannot run here, either.{{ end }}
    reason: Forbidden
  - expression: >-
      request.operation != 'UPDATE' || variables.ran
      || oldObject.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].orValue('') != 'true'
      || object.metadata.?annotations[?'scheduling.x-k8s.io/suspend'].orValue('') == 'true'
      || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: a waiting {{ $kind.kind }} keeps the annotation scheduling.x-k8s.io/suspend "true". Delete
      the {{ $kind.kind }} to take it out of the queue.
    reason: Forbidden
  - expression: >-
      !variables.orphans || variables.ended || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: deleting a {{ $kind.kind }} must delete its pods too. Delete it with propagationPolicy
      Background or Foreground, as kubectl does without --cascade=orphan
      {{- if eq $kind.group "batch" }}; without a policy the API deletes a {{ $kind.kind }} and keeps its pods{{ end }}.
    reason: Forbidden
  - expression: >-
      request.operation == 'DELETE' || !object.metadata.?finalizers.orValue([]).exists(f, f == 'orphan')
      || (request.operation == 'UPDATE' && oldObject.metadata.?finalizers.orValue([]).exists(f, f == 'orphan'))
      || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: the finalizer orphan would keep the pods of a {{ $kind.kind }} after its deletion. Remove
      the finalizer.
    reason: Forbidden
  - expression: >-
      variables.entries[1] <= 1000 || variables.entries[1] <= variables.entries[0] || variables.byOperator || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: a {{ $kind.kind }} has at most 1000 {{ eq $kind.kind "Workflow" | ternary "labels, annotations, and fields of spec and status" "labels and annotations" }}.
      With more, the API server would not let kube-queue suspend it. Remove some.
    reason: Forbidden
  {{- if eq $kind.kind "Workflow" }}
  # Without it, the Workflow could be queued again without its size.
  - expression: >-
      request.operation != 'UPDATE' || oldObject.metadata.?annotations[?'kube-queue/managed'].orValue('') != 'true'
      || object.metadata.?annotations[?'kube-queue/managed'].orValue('') == 'true' || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: a {{ $kind.kind }} keeps the annotation kube-queue/managed "true", which requires its size. Leave the
      annotation, or delete the {{ $kind.kind }}.
    reason: Forbidden
  # It has no subresource status, so whoever can write it could start it again after its unit has ended.
  - expression: >-
      request.operation != 'UPDATE' || !variables.ended || variables.mayBypass
      || ({{ replace "oldObject." "object." $fence.ended }})
    message: >-
      namespace is managed by kube-queue: a {{ $kind.kind }} that has ended cannot run again, because its quota is free. Create another
      one, for example with argo resubmit.
    reason: Forbidden
  {{- end }}
  {{- if and (eq $kind.kind "JobSet") (has "trainjob" (include "kube-queue.managed" $root | fromJsonArray)) }}
  # Trainer creates the JobSet of a TrainJob again, even if the TrainJob has failed, and as its runtime describes it then.
  - expression: >-
      request.operation != 'DELETE'
      || !{{ include "kube-queue.celPart" $kind | replace "object." "oldObject." | nindent 6 | trim }}
      || request.userInfo.?username.orValue('') in [{{ include "kube-queue.garbageCollectors" $root }}, 'system:serviceaccount:kube-system:namespace-controller']
      || authorizer.group('scheduling.x-k8s.io').resource('queueunits').namespace(request.namespace).name('trainjobs.trainer.kubeflow.org').check('operate').allowed()
      || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: Trainer would create the JobSet again and run it, but the quota has room only for what was
      admitted. Delete the TrainJob of the JobSet.
    reason: Forbidden
  {{- end }}
  {{- if $kind.partOf }}
  - expression: >-
      request.operation != 'UPDATE'
      || object.metadata.?annotations[?'kube-queue/not-part-of'] == oldObject.metadata.?annotations[?'kube-queue/not-part-of']
      || !{{ include "kube-queue.celPart" $kind | nindent 6 | trim }}
      || variables.byOperator || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: the annotation kube-queue/not-part-of of a {{ $kind.kind }} shows that it is queued itself, and cannot be changed.
    reason: Forbidden
  {{- end }}
  {{- $older := list }}{{ range $kind.extensions }}{{ $older = concat $older (rest .versions) }}{{ end }}
  {{- with $older }}
  # The API server removes the fields that an older version lacks, from both objects before a policy sees them.
  - expression: >-
      request.operation != 'UPDATE' || ((!variables.ran || variables.held){{ if $kind.partOf }} && !variables.part{{ end }})
      || !(request.kind.version in ['{{ join "', '" . }}']) || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: a {{ $kind.kind }} that was started cannot be changed in version {{ join " or " . }}, because
      fields that only the newer version has would be lost. Use {{ $kind.group }}/{{ (first $kind.extensions).versions | first }}.
    reason: Forbidden
  {{- end }}
  {{- range $fence.rules }}
  - expression: >-
      request.operation != 'UPDATE' || {{ if .always }}!({{ $fence.readable }} && {{ $fence.wasReadable }}){{ else }}((!variables.ran || variables.held){{ if $kind.partOf }} && !variables.part{{ end }}){{ end }}
      || (
        {{- .expression | nindent 8 }})
      || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: of a {{ $kind.kind }}{{ if not .always }} that was started{{ end }}, {{ .fields }} cannot grow or change:
      the quota has room only for what was admitted, and kube-queue must be able to suspend it. Delete the {{ $kind.kind }} and create it again with its new size.
    reason: Forbidden
  {{- end }}
  {{- with include "kube-queue.celStoppable" $kind }}
  # Even of a suspended {{ $kind.kind }}: its operator may not have stopped the pods yet.
  - expression: >-
      request.operation != 'UPDATE' || !({{ $fence.readable }} && {{ $fence.wasReadable }})
      || (
        {{- . | nindent 8 }})
      || !(
        {{- replace "object." "oldObject." . | nindent 8 }})
      || variables.mayBypass
    message: >-
      namespace is managed by kube-queue: a {{ $kind.kind }} cannot change so that its operator would no longer suspend it
      {{- if include "kube-queue.celManagedBy" $kind }}, for example to the managedBy of another controller{{ end }}. Delete it and create it again.
    reason: Forbidden
  {{- end }}
---
{{ include "kube-queue.fenceBinding" (list $root $name) }}
{{- if $fence.scale }}
---
{{ include "kube-queue.fenceScalePolicy" (list $root $kind $versions) }}
{{- end }}
{{- end -}}

{{/* Whether the operator of the kind suspends the object: managedBy names it, and it accepts the object while that is suspended. */}}
{{- define "kube-queue.celStoppable" -}}
{{- $terms := list -}}
{{- with include "kube-queue.celManagedBy" . }}{{ $terms = append $terms . }}{{ end -}}
{{- if .holdable -}}
{{- range .maps }}{{ $terms = append $terms (include "kube-queue.celMap" .) }}{{ end -}}
{{- range .holdable }}{{ $terms = append $terms .expression }}{{ end -}}
{{- end -}}
{{- join "\n&& " $terms -}}
{{- end -}}

{{/* list ROOT NAME: the binding of a policy to the managed namespaces. */}}
{{- define "kube-queue.fenceBinding" -}}
{{- $root := index . 0 -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ index . 1 }}
  labels:
    {{- include "kube-queue.labels" $root | nindent 4 }}
spec:
  policyName: {{ index . 1 }}
  validationActions: {{ eq (include "kube-queue.fence" $root) "deny" | ternary "[Deny]" "[Warn, Audit]" }}
  matchResources:
    namespaceSelector:
      matchLabels:
        kube-queue/managed: "true"
{{- end -}}


{{/* list ROOT KIND VERSIONS: the fence of the subresource scale, and its binding. */}}
{{- define "kube-queue.fenceScalePolicy" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
{{- $fence := $kind.fence -}}
{{- $name := printf "kube-queue-fence-%s-scale" (lower $kind.kind) -}}
# The fence for the subresource scale of {{ $kind.kind }}s. The {{ $kind.kind }} itself is a parameter,
# because the request contains only the number.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "kube-queue.labels" $root | nindent 4 }}
spec:
  failurePolicy: Fail
  paramKind:
    apiVersion: {{ $kind.group }}/{{ (first $kind.extensions).versions | first }}
    kind: {{ $kind.kind }}
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    - apiGroups: [{{ $kind.group }}]
      apiVersions: [{{ index . 2 }}]
      operations: [UPDATE]
      resources: [{{ $kind.resource }}/scale]
  matchConditions:
  - name: grows
    expression: "object.?spec.?replicas.orValue(0) > oldObject.?spec.?replicas.orValue(0)"
  validations:
  - expression: >-
      params == null || params.metadata.name != object.metadata.name
      || params.?spec.orValue('') == ''
      {{- with $fence.scaledSuspended }}
      || {{ . }}
      {{- end }}
      {{- with $fence.scaledElastic }}
      || ({{ . }})
      {{- end }}
      || (params.metadata.?annotations[?'kube-queue/bypass'].orValue('') == 'true'
        && authorizer.group('scheduling.x-k8s.io').resource('queueunits').namespace(request.namespace).check('bypass').allowed())
    message: >-
      namespace is managed by kube-queue: a {{ $kind.kind }} that was started cannot grow
      {{- if $fence.scaledElastic }} beyond its elasticPolicy{{ end }}, because the quota has room only for what was admitted.
      Delete the {{ $kind.kind }} and create it again with its new size.
    reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "kube-queue.labels" $root | nindent 4 }}
spec:
  policyName: {{ $name }}
  # The {{ $kind.kind }}s of the namespace of the request.
  paramRef:
    selector: {}
    parameterNotFoundAction: Allow
  validationActions: {{ eq (include "kube-queue.fence" $root) "deny" | ternary "[Deny]" "[Warn, Audit]" }}
  matchResources:
    namespaceSelector:
      matchLabels:
        kube-queue/managed: "true"
{{- end -}}

{{/* The policy that limits what job-extensions changes in jobs, and its binding. */}}
{{- define "kube-queue.jobExtensionsPolicy" -}}
{{- $root := . -}}
{{- $names := include "kube-queue.granted" . | fromJsonArray -}}
# RBAC can only permit job-extensions to change jobs. This policy limits it to jobs that are marked, were
# released or are suspended, and to the fields that it sets: the suspend field, the fields that a suspended
# job requires, and its own annotations. A release may also change annotations of pods, if the annotation
# kube-queue/pod-annotations of the job lists them, now or before. A release or a suspension may also
# change the number of pods of an elastic job, if it has the annotation kube-queue/original-count, now
# or before.
#
# An owner can remove every mark of a job while it is queued, and job-extensions must suspend it again. Such
# a job was suspended before, so its generation is greater than 1.
#
# A webhook that changes other fields of a job in the same request makes the request fail. It may write labels and
# annotations of its own.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: kube-queue-job-extensions
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    {{- range $kind := include "kube-queue.kinds" . | fromJsonArray }}
    {{- if include "kube-queue.named" (list $kind $names) }}
    - apiGroups: [{{ $kind.group }}]
      apiVersions: ["*"] {{- /* as in the role, which knows no versions */}}
      operations: [UPDATE]
      resources: [{{ $kind.resource }}{{ if $kind.showsQueuing }}, {{ $kind.resource }}/status{{ end }}]
    {{- end }}
    {{- end }}
  matchConditions:
  - name: by-job-extensions
    expression: "request.userInfo.?username.orValue('') == '{{ include "kube-queue.jobExtensionsUser" . }}'"
  variables:
  - name: now
    expression: "object.metadata.?annotations.orValue({})"
  - name: was
    expression: "oldObject.metadata.?annotations.orValue({})"
  # It lists KEY=PODSET:PODSET,KEY=PODSET.
  - name: recorded
    expression: >-
      [variables.now, variables.was].map(a, a[?'kube-queue/pod-annotations'].orValue('')).join(',').split(',').map(entry, entry.split('=')[0])
  # The job was released with fewer pods than it requests, or is now.
  - name: resized
    expression: "'kube-queue/original-count' in variables.now || 'kube-queue/original-count' in variables.was"
  - name: own
    expression: >-
      ['scheduling.x-k8s.io/suspend', 'scheduling.x-k8s.io/active', 'kube-queue/released', 'kube-queue/pod-annotations',
      'kube-queue/original-count', 'kube-queue/admitted-count', 'kube-queue/resumed', 'kube-queue/shutdown-after-job-finishes']
  - name: labels
    expression: "[object, oldObject].map(x, x.metadata.?labels.orValue({}))"
  # Webhooks and policies of others may write their own keys in the same request.
  - name: kept
    expression: >-
      [variables.now, variables.was, variables.labels[0], variables.labels[1]].map(keys, keys.map(k, k)
        .filter(k, k.contains('kube-queue') || k.contains('k8s.io/') || k.contains('kubernetes.io/') || k in {{ include "kube-queue.attributionLabels" . }}))
  validations:
  - expression: >-
      'scheduling.x-k8s.io/suspend' in variables.was || 'kube-queue/released' in variables.was
      || oldObject.metadata.?generation.orValue(0) > 1
      || {{ include "kube-queue.celSuspended" (list (include "kube-queue.kinds" . | fromJsonArray) "oldObject") | nindent 6 | trim }}
    message: job-extensions changes only jobs that are marked, were released or are suspended
    reason: Forbidden
  - expression: >-
      object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
      && object.metadata.?finalizers == oldObject.metadata.?finalizers
      && (variables.kept[0] + variables.kept[1]).all(k, k in variables.own || variables.now[?k] == variables.was[?k])
      && (variables.kept[2] + variables.kept[3]).all(k, variables.labels[0][?k] == variables.labels[1][?k])
    message: >-
      job-extensions changes only its own annotations of a job; if a mutating webhook or policy changes others of kube-queue or
      Kubernetes, owners or finalizers in the same request, exclude the ServiceAccount job-extensions from it
    reason: Forbidden
  {{- range $kind := include "kube-queue.kinds" . | fromJsonArray }}
  {{- if and (eq .kind "Workflow") (include "kube-queue.named" (list $kind $names)) }}
  # Workflows have no subresource status, and Argo runs the templates in it. The release has Argo start its clock again.
  - expression: >-
      object.kind != 'Workflow' || (object.?status.orValue({}).all(f, f in oldObject.?status.orValue({}) && object.status[f] == oldObject.status[f])
        && oldObject.?status.orValue({}).all(f, f in ['phase', 'startedAt'] || f in object.?status.orValue({})))
    message: job-extensions changes nothing in the status of a Workflow except that its release removes phase and startedAt
    reason: Forbidden
  {{- end }}
  {{- end }}
  {{- range $own, $kinds := include "kube-queue.sameOwn" (list $root $names) | fromJson }}
  - expression: >-
      {{ include "kube-queue.celIsNot" $kinds }} || (
        {{- $own | nindent 8 }})
    message: >-
      job-extensions changes only the fields of a job that hold or release it; if a mutating webhook or policy changes its spec in
      the same request, exclude the ServiceAccount job-extensions from it
    reason: Forbidden
  {{- end }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: kube-queue-job-extensions
  labels:
    {{- include "kube-queue.labels" . | nindent 4 }}
spec:
  policyName: kube-queue-job-extensions
  validationActions: [Deny]
{{- end -}}

{{/* list ROOT NAMES: names of kinds by the fields that job-extensions sets in them. */}}
{{- define "kube-queue.sameOwn" -}}
{{- $same := dict -}}
{{- $names := index . 1 -}}
{{- range include "kube-queue.kinds" (index . 0) | fromJsonArray -}}
{{- if include "kube-queue.named" (list . $names) -}}
{{- $_ := set $same .fence.own (append (get $same .fence.own | default list) .kind) -}}
{{- end -}}
{{- end -}}
{{- $same | toJson -}}
{{- end -}}
