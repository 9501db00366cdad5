package options

import (
	"fmt"
	"strconv"
	"strings"

	"kube-queue.dev/kube-queue/pkg/queue"
)

// Variables that older kube-queue releases read.
const (
	envStrictPriority    = "StrictPriority"
	envStrictConsistency = "StrictConsistency"
)

func policies() []queue.Policy {
	return []queue.Policy{queue.RoundRobin, queue.Priority, queue.Block}
}

func policyNames() []string {
	var names []string
	for _, policy := range policies() {
		names = append(names, string(policy))
	}
	return names
}

func (o *Options) checkPolicy() error {
	for _, policy := range policies() {
		if o.policyName == string(policy) {
			o.Policy = policy
			return nil
		}
	}
	return fmt.Errorf("unknown policy %q; known policies: %s", o.policyName, strings.Join(policyNames(), ", "))
}

// policyOf returns the policy that the two historical variables select. Both together select
// Block.
func policyOf(lookup func(string) string) (string, error) {
	strictPriority, err := boolean(lookup, envStrictPriority)
	if err != nil {
		return "", err
	}
	strictConsistency, err := boolean(lookup, envStrictConsistency)
	if err != nil {
		return "", err
	}
	switch {
	case strictPriority:
		return string(queue.Block), nil
	case strictConsistency:
		return string(queue.Priority), nil
	default:
		return string(queue.RoundRobin), nil
	}
}

func boolean(lookup func(string) string, name string) (bool, error) {
	value := lookup(name)
	if value == "" {
		return false, nil
	}
	set, err := strconv.ParseBool(strings.ToLower(value))
	if err != nil {
		return false, fmt.Errorf("environment variable %s: must be true or false, not %q", name, value)
	}
	return set, nil
}
