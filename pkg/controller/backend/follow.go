package backend

import "k8s.io/client-go/tools/cache"

// Follow has seen and gone reported everything that the informer sees, by a goroutine
// of the informer's own: of what was deleted its key, and how it was last known.
// Synced reports whether they have been reported all that was listed at the start.
func Follow(informer cache.SharedIndexInformer, seen func(object any), gone func(key string, last any)) (synced cache.InformerSynced, err error) {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, o any) { seen(o) },
		DeleteFunc: func(o any) {
			last := o
			if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				last = tombstone.Obj
			}
			gone(Key(o), last)
		},
	})
	if err != nil {
		return nil, err
	}
	return registration.HasSynced, nil
}

// Key of an object that an informer reports: its namespace, if it has one, "/" and
// its name.
func Key(object any) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return "" // informers hold nothing that has no key
	}
	return key
}
