// Preloaded into a peer that has no option for the address it listens on: it listens on loopback only.
import { Server } from 'node:net';

const { listen } = Server.prototype;
Server.prototype.listen = function (first, ...rest) {
  return typeof first === 'number'
    ? listen.call(this, { port: first, host: '127.0.0.1' }, rest.at(-1))
    : listen.call(this, first, ...rest);
};
