// One client's way to several instances, as a balancer without stickiness sends it: each exchange goes to the next one. The
// load generator does that itself, since a balancer between would cost more than the gateways that are measured.
import { HttpConnection } from './http-connection.mjs';

let made = 0;

/** A connection to a target, whose exchanges go to its ports in turn. */
export const connectTo = (ports) => (ports.length === 1 ? new HttpConnection(ports[0]) : new RotatingConnection(ports));

class RotatingConnection {
  #connections;
  #next;

  constructor(ports) {
    this.#connections = ports.map((port) => new HttpConnection(port));
    this.#next = made++ % ports.length; // or all clients would go to one instance at a time
  }

  send(parts, listener) {
    const connection = this.#connections[this.#next];
    this.#next = (this.#next + 1) % this.#connections.length;
    connection.send(parts, listener);
  }

  destroy() {
    for (const connection of this.#connections) connection.destroy();
  }
}
