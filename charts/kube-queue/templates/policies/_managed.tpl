{{/* The policy of the managed namespaces, and its binding. */}}
{{- define "kube-queue.managedPolicy" -}}
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
      && (!object.apiVersion.startsWith('kubeflow.org/') || type(object.spec.?runPolicy.orValue({})) == map)
      && (object.kind != 'RayJob' || (
        type(object.spec.?deletionStrategy.orValue({})) == map
        && type(object.spec.?deletionStrategy.?onSuccess.orValue({})) == map
        && type(object.spec.?deletionStrategy.?onFailure.orValue({})) == map))
  # A child is held by holding its parent; but what is made on a schedule queues each
  # for itself.
  - name: no-controller-owner
    expression: >-
      !object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false)
        && !(object.kind == 'Job' && o.?kind.orValue('') == 'CronJob' && o.?apiVersion.orValue('').startsWith('batch/'))
        && !(object.kind == 'RayJob' && o.?kind.orValue('') == 'RayCronJob' && o.?apiVersion.orValue('').startsWith('ray.io/')))
  - name: no-other-queue
    expression: "!object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].hasValue()"
  # The kubeflow kinds have it in runPolicy. A Workflow has none, but its spec may
  # hold anything.
  - name: managed-by-its-controller
    expression: >-
      object.kind == 'Workflow' || (
        object.apiVersion.startsWith('kubeflow.org/') ? object.spec.?runPolicy.?managedBy : object.spec.?managedBy
      ).orValue('') in [
        '', 'kubernetes.io/job-controller', 'kubeflow.org/training-operator', 'kubeflow.org/mpi-operator',
        'ray.io/kuberay-operator', 'jobset.sigs.k8s.io/jobset-controller']
  variables:
  - name: kubeflow
    expression: "object.apiVersion.startsWith('kubeflow.org/')"
  - name: rayJob
    expression: "object.kind == 'RayJob'"
  # As in hold-rayjob. Others get the mark alone, and job-extensions says
  # InvalidRequest.
  - name: canBeSuspended
    expression: >-
      !variables.rayJob || (
        object.spec.?clusterSelector.orValue({}) == {}
        && object.spec.?deletionStrategy.?deletionRules.orValue([]) == []
        && object.spec.?deletionStrategy.?onSuccess.?policy.orValue('') != 'DeleteNone'
        && object.spec.?deletionStrategy.?onFailure.?policy.orValue('') != 'DeleteNone')
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
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        variables.kubeflow || !variables.canBeSuspended ? [] : [
          JSONPatch{op: 'add', path: '/spec/suspend', value: true}
        ]
  # As in hold-tfjob and its like.
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        !variables.kubeflow ? [] : (object.spec.?runPolicy.hasValue() ? [] : [
          JSONPatch{op: 'add', path: '/spec/runPolicy', value: {}}
        ]) + [
          JSONPatch{op: 'add', path: '/spec/runPolicy/suspend', value: true}
        ] + (object.spec.?runPolicy.?cleanPodPolicy.or(object.spec.?cleanPodPolicy).orValue('') != '' ? [] : [
          JSONPatch{op: 'add', path: '/spec/runPolicy/cleanPodPolicy', value: 'Running'}
        ])
  # As in hold-rayjob.
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        !variables.rayJob || !variables.canBeSuspended || object.spec.?shutdownAfterJobFinishes.orValue(false) != false ? [] : [
          JSONPatch{op: 'add', path: '/spec/shutdownAfterJobFinishes', value: true},
          JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('kube-queue/shutdown-after-job-finishes'), value: 'false'}
        ]
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
