// Package podrunner acts as the kubelet for the pods of kube-queue's own Deployments: it runs
// their containers as local processes with the ServiceAccount of the pod, and reports their
// status to the API server. The installation of the chart, an upgrade, or an edited Deployment
// therefore behaves as in a real cluster.
//
// The pods are placed by the scheduler on simulated nodes. kwok leaves those alone that
// carry the annotation Annotation.
//
// What is taken from the pod: arguments, environment, ConfigMaps that are mounted,
// probes by HTTP, the grace period, restarts with growing pauses. A pod is ready while both
// its probes pass; one whose liveness probe fails is not started again.
// What is not: images (a program is found by the last part of the name of its image, that of
// another release by the tag), limits and security contexts. Each pod has its own loopback
// address, and programs that listen on all addresses listen only on that one.
package podrunner
