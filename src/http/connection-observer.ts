/** Is told of what stays open to a server's clients. What is returned is called once, when it is not open any more. */
export interface Traffic {
  onStream(): () => void;
  onWebSocket(): () => void;
}
