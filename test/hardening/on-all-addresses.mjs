// Preloaded into a gateway that a test starts (`startGateway` binds to 127.0.0.1): binds it to all addresses instead.
process.argv[process.argv.indexOf('--host') + 1] = '0.0.0.0';
