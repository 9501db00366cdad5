package model

import (
	"encoding/json"
	"time"
)

const leaseGroup = "coordination.k8s.io"

// programNamespace is the namespace of the programs' leases.
const programNamespace = "kube-queue"

// deciderLease is the lease of the program that decides why a unit waits.
const deciderLease = "kube-queue-controller"

// LeaseFacts is the holder of a lease, and its duration.
type LeaseFacts struct {
	Holder string
	Lasts  time.Duration
}

func parseLease(_ *decoder, _ string, m *meta, raw json.RawMessage) (any, error) {
	if m.Namespace != programNamespace {
		return nil, nil
	}
	var lease struct {
		Spec struct {
			HolderIdentity       string
			LeaseDurationSeconds int
		}
	}
	if err := json.Unmarshal(raw, &lease); err != nil {
		return nil, err
	}
	return &LeaseFacts{lease.Spec.HolderIdentity, time.Duration(lease.Spec.LeaseDurationSeconds) * time.Second}, nil
}
