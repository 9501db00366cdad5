// Package podrunner acts as the kubelet for the pods of kube-queue's own Deployments: it runs their
// containers as local processes with the ServiceAccount of the pod, and reports their status to the
// API server. The installation of the chart, an upgrade, or an edited Deployment therefore behaves
// as in a real cluster.
//
// The scheduler assigns the pods to simulated nodes. kwok ignores pods with the annotation
// Annotation.
//
// Supported: arguments with references to variables, environment, mounted ConfigMaps, HTTP probes of named
// ports, the grace period, restarts with backoff. A pod is ready while both probes pass. A failed liveness
// probe does not restart the program. Not supported: images (a program is found by the last part of the
// image name, a program of another release by the tag), commands, limits and security contexts.
//
// Each pod's process has its own loopback address. A program that listens on all addresses listens only on this one.
// It corresponds to the pod's address in the cluster, so localcluster can route connections from the API server to a
// Service, such as a webhook's, to the processes of its ready pods.
package podrunner
