package backend

import "k8s.io/client-go/tools/cache"

// Follow calls seen for each object that the informer adds or updates, and gone for each deleted
// object with its key and its last known version. A goroutine of the informer calls both. synced
// reports whether all objects of the initial list were reported.
func Follow(informer cache.SharedInformer, seen func(object any), gone func(key string, last any)) (synced cache.InformerSynced, err error) {
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

// Key returns the key of an object that an informer reports: namespace/name, or the name if it has no
// namespace.
func Key(object any) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return "" // objects of an informer always have a key
	}
	return key
}
