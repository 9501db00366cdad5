package serving

import "testing"

func TestProfilesAreServedOnTheLoopbackInterfaceOnly(t *testing.T) {
	for address, served := range map[string]bool{
		"": true, "0": true, "localhost:6060": true, "127.0.0.1:6060": true, "127.1.2.3:1": true, "[::1]:6060": true,
		":6060": false, "0.0.0.0:6060": false, "[::]:6060": false, "10.0.0.1:6060": false, "example.com:6060": false, "localhost": false,
	} {
		opts := DefaultOptions()
		opts.profilingAddress = address
		if err := opts.checkProfiling(); (err == nil) != served {
			t.Errorf("%q: error is %v", address, err)
		}
	}
}
