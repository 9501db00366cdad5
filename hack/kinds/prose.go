package main

// groups of the kinds in the order of the rules of roles and policies.
func groups() []string {
	return []string{"batch", "kubeflow.org", "sparkoperator.k8s.io", "ray.io", "jobset.x-k8s.io", "argoproj.io"}
}

// prose is what the comments of a hold policy say of the kind.
type prose struct {
	About      string `json:"about"`
	AboutPatch string `json:"aboutPatch,omitempty"`
	Operator   string `json:"operator"`
}

func proseOf(kind string) prose {
	known := map[string]prose{
		"Job": {
			Operator: "its operator",
			About: `# Holds a Job that carries only the annotation: with suspend set while it is
# created, no pod is made before the release. A Job that carries suspend itself
# is held without this policy.
#
# Every match condition must hold, and none may fail on any Job: a failure would
# refuse the object of somebody who does not know of kube-queue. So fields are
# read by optional chaining only.`,
		},
		"JobSet": {
			Operator: "its operator",
			About: `# Holds a JobSet that carries only the annotation: with suspend set while it is
# created, so are its Jobs, and no pod is made before the release. A JobSet that
# carries suspend itself is held without this policy.
#
# Every match condition must hold, and none may fail on any JobSet: a failure would
# refuse the object of somebody who does not know of kube-queue. So fields are
# read by optional chaining only.`,
		},
		"MPIJob": {
			Operator: "its operator",
			About: `# Holds an MPIJob that carries only the annotation: with suspend set while it is
# created, the operator makes no pod before the release.
#
# There are two kinds of this name: v1 is training-operator's, v2beta1 is
# mpi-operator's. A cluster has one or the other.
#
# Every match condition must hold, and none may fail on any MPIJob: a failure would
# refuse the object of somebody who does not know of kube-queue. So fields are
# read by optional chaining only.`,
			AboutPatch: `# runPolicy may be absent. Unless told otherwise the operator leaves pods behind
# that run for ever, as workers do; they would keep the quota in use. In v1 it may
# be told so outside of runPolicy too.`,
		},
		"PyTorchJob": {
			Operator: "its operator",
			About: `# Holds a PyTorchJob that carries only the annotation: with suspend set while it is
# created, the operator makes no pod before the release.
#
# Every match condition must hold, and none may fail on any PyTorchJob: a failure would
# refuse the object of somebody who does not know of kube-queue. So fields are
# read by optional chaining only.`,
			AboutPatch: `# runPolicy may be absent. Unless told otherwise the operator leaves pods behind
# that run for ever, as parameter servers do; they would keep the quota in use.`,
		},
		"RayCluster": {
			Operator: "its operator",
			About: `# Holds a RayCluster that carries only the annotation: with suspend set while it is
# created, the operator makes no pod before the release. A RayCluster that
# carries suspend itself is held without this policy.
#
# Every match condition must hold, and none may fail on any RayCluster: a failure would
# refuse the object of somebody who does not know of kube-queue. So fields are
# read by optional chaining only.`,
		},
		"RayJob": {
			Operator: "its operator",
			About: `# Holds a RayJob that carries only the annotation: with suspend set while it is
# created, the operator makes no cluster before the release.
#
# The operator refuses, for good, to suspend a RayJob whose cluster would outlive it.
# So one that is suspended, by this policy or by itself, gets
# shutdownAfterJobFinishes in the same step, and a note of what it was: job-extensions
# puts that back with the release.
#
# Every match condition must hold, and none may fail on any RayJob: a failure would
# refuse the object of somebody who does not know of kube-queue. So fields are
# read by optional chaining only.`,
		},
		"SparkApplication": {
			Operator: "its operator",
			About: `# Holds a SparkApplication that carries only the annotation: with suspend set while it is
# created, the operator submits nothing before the release. It must be of version
# 2.4 or later: an older one does not know the field.
#
# Every match condition must hold, and none may fail on any SparkApplication: a failure would
# refuse the object of somebody who does not know of kube-queue. So fields are
# read by optional chaining only.`,
		},
		"TFJob": {
			Operator: "its operator",
			About: `# Holds a TFJob that carries only the annotation: with suspend set while it is
# created, the operator makes no pod before the release.
#
# Every match condition must hold, and none may fail on any TFJob: a failure would
# refuse the object of somebody who does not know of kube-queue. So fields are
# read by optional chaining only.`,
			AboutPatch: `# runPolicy may be absent. Unless told otherwise the operator leaves pods behind
# that run for ever, as parameter servers do; they would keep the quota in use.`,
		},
		"Workflow": {
			Operator: "Argo",
			About: `# Holds a Workflow that carries only the annotation: with suspend set while it is
# created, Argo makes no pod before the release. A Workflow that carries suspend
# itself is held without this policy.
#
# Every match condition must hold, and none may fail on any Workflow: a failure would
# refuse the object of somebody who does not know of kube-queue. So fields are
# read by optional chaining only; Argo's CRD lets anything be in them.`,
		},
	}
	return known[kind]
}
