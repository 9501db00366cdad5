// Package podrunner plays the kubelet for the pods of kube-queue's own Deployments:
// it runs their containers as processes of this machine, as the pod's ServiceAccount,
// and reports the API server what becomes of them. So a chart that was installed, an
// upgrade, or a Deployment that somebody edits acts as it does in a real cluster.
//
// The pods are placed by the scheduler on simulated nodes. kwok leaves those alone that
// carry the annotation Annotation.
//
// What is taken from the pod: arguments, environment, ConfigMaps that are mounted,
// probes by HTTP, the grace period, restarts with growing pauses. A pod is ready while both
// its probes pass; one whose liveness probe fails is not started again.
// What is not: images (a program is found by the last part of its image's name, that of
// another release by the tag), limits and security contexts. Each pod has a loopback address of its own, and an address to
// listen on that names no host is made one of that.
package podrunner
