package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// object is a JSON object for the API server.
type object = map[string]any

// node returns a simulated node. All of its capacity is allocatable. kwok sets it to ready.
func (c Config) node(number int) object {
	name := "node-" + strconv.Itoa(number)
	capacity := object{
		"cpu":               c.NodeCPU,
		"memory":            c.NodeMemory,
		"ephemeral-storage": "1Ti",
		"pods":              "1000",
	}
	if c.NodeGPUs > 0 {
		capacity["nvidia.com/gpu"] = strconv.Itoa(c.NodeGPUs)
	}
	return object{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata": object{
			"name": name,
			"labels": object{
				"kubernetes.io/arch":     "amd64",
				"kubernetes.io/hostname": name,
				"kubernetes.io/os":       "linux",
			},
		},
		"status": object{
			"capacity":    capacity,
			"allocatable": capacity,
			"addresses": []object{
				{"type": "InternalIP", "address": fmt.Sprintf("10.%d.%d.%d", 32+number>>16, number>>8&255, number&255)},
				{"type": "Hostname", "address": name},
			},
			"nodeInfo": object{
				"architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": c.kubernetes().version,
				"bootID": "", "containerRuntimeVersion": "simulated", "kernelVersion": "simulated",
				"kubeProxyVersion": "", "machineID": name, "osImage": "simulated", "systemUUID": name,
			},
		},
	}
}

// createNodes creates all nodes.
func (s *setup) createNodes(ctx context.Context) error {
	for number := 1; number <= s.config.Nodes; number++ {
		if err := s.createIfMissing(ctx, "/api/v1/nodes", s.config.node(number)); err != nil {
			return fmt.Errorf("create node-%d: %w", number, err)
		}
	}
	return nil
}

// nodesReady passes when pods can be scheduled to all nodes: they are ready, and the node
// controller has removed the initial taint.
func (s *setup) nodesReady(ctx context.Context) error {
	var list corev1.NodeList
	if err := s.api.Get(ctx, "/api/v1/nodes", &list); err != nil {
		return err
	}
	if len(list.Items) < s.config.Nodes {
		return fmt.Errorf("%d of %d nodes exist", len(list.Items), s.config.Nodes)
	}
	for _, node := range list.Items {
		ready := func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
		if !slices.ContainsFunc(node.Status.Conditions, ready) {
			return fmt.Errorf("%s is not ready", node.Name)
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("%s has taint %s", node.Name, node.Spec.Taints[0].Key)
		}
	}
	return nil
}
