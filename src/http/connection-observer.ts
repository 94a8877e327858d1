/** Is told of what stays open to a server's clients. What is returned is called once, when it is not open any more. */
export interface ConnectionObserver {
  onStream(): () => void;
  onWebSocket(): () => void;
}
