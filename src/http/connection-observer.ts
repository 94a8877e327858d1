/**
 * Observes the open streams and WebSockets of a server's clients. Each method returns a function that is called once at
 * the close.
 */
export interface ConnectionObserver {
  onStream(): () => void;
  onWebSocket(): () => void;
}
