// What a result depends on beside the programs: machine, versions, backend, time.
import os from 'node:os';
import { peerVersion } from './peers.mjs';

export const describeMachine = (backend) => ({
  machine: {
    cpus: os.cpus().length,
    cpu: os.cpus()[0].model,
    gib: Math.round(os.totalmem() / 2 ** 30),
    kernel: os.release(),
  },
  node: process.version,
  backend: backend.name,
  peers: Object.fromEntries(['supergateway', 'mcp-proxy'].map((name) => [name, peerVersion(name)])),
  at: new Date().toISOString(),
});
