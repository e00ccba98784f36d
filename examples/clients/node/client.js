// The external vantage of ordering-prober through @google-cloud/pubsub. The protocol is in docs/external-clients.md.
//
// A subscriber has one stream, so that the messages of a stream come in its order. Where the client has no public way to do what the
// protocol needs (which stream a message came on, cut a stream, forget a message), private fields of the pinned version are used. They are
// marked "private". Neither changes what the client does with a message.

'use strict';

const readline = require('node:readline');
const {PubSub, Duration} = require('@google-cloud/pubsub');
const {version} = require('@google-cloud/pubsub/package.json');

const CODES = [
  'OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS', 'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE', 'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS',
  'UNAUTHENTICATED',
];
const UNAVAILABLE = CODES.indexOf('UNAVAILABLE');

const publishers = new Map();
const subscribers = new Map();
let options = {};

function emit(event) {
  process.stdout.write(JSON.stringify(event) + '\n');
}

function newClient(resource) {
  return new PubSub({...options, projectId: resource.split('/')[1]});
}

class Publisher {
  constructor(name, topic) {
    this.name = name;
    this.pubsub = newClient(topic);
    this.topic = this.pubsub.topic(topic, {messageOrdering: true});
  }

  publish({id, data, ordering_key: orderingKey, attributes}) {
    const message = {data: Buffer.from(data, 'base64'), attributes};
    if (orderingKey) message.orderingKey = orderingKey;
    const answer = event => emit({publisher: this.name, id, ...event});
    this.topic.publishMessage(message).then(
      message_id => answer({event: 'published', message_id}),
      error => answer({event: certainlyNotStored(error) ? 'publish_failed' : 'publish_unknown', reason: line(error)})
    );
  }

  close() {
    this.topic.flush().catch(() => {}).then(() => this.pubsub.close()).catch(() => {});
  }
}

/** The client repeats a publish, so only these say that no attempt stored it: a paused key, or a request that no service takes. */
function certainlyNotStored(error) {
  return error.orderingKey !== undefined || error.code === CODES.indexOf('INVALID_ARGUMENT') || typeof error.code !== 'number';
}

class Subscriber {
  constructor({subscriber, subscription, messages_max: maxMessages, bytes_max: maxBytes, ack_deadline_s: seconds}) {
    this.name = subscriber;
    this.origin = new Map(); // session by ack id, from when a stream delivered a message until the client gives it out
    this.held = new Map(); // session and message by ack id, until it is answered
    this.sessions = 0;
    this.over = false;
    this.pubsub = newClient(subscription);
    this.subscription = this.pubsub.subscription(subscription, {
      flowControl: {maxMessages, maxBytes, allowExcessMessages: false},
      streamingOptions: {maxStreams: 1},
      minAckDeadline: Duration.from({seconds}),
      maxAckDeadline: Duration.from({seconds}),
    });
    this.subscription.on('error', error => this.end(error));
    this.subscription.on('message', message => this.deliver(message)); // opens it
    this.subscription.on('close', () => this.end());
    this.client = this.subscription._subscriber; // private
    this.watchStreams(this.client._stream); // private
  }

  watchStreams(streams) {
    const replace = streams._replaceStream.bind(streams); // private
    streams._replaceStream = (index, stream, reason) => {
      this.open(stream);
      replace(index, stream, reason);
    };
  }

  open(stream) {
    const session = {name: `stream-${++this.sessions}`, undelivered: new Set(), reason: undefined, closed: false};
    this.emit({event: 'opened', session: session.name, asked_at: Date.now() / 1000});
    stream.once('metadata', () => this.emit({event: 'answered'}));
    stream.on('data', ({receivedMessages}) => {
      for (const {ackId} of receivedMessages) {
        session.undelivered.add(ackId);
        this.origin.set(ackId, session);
      }
    });
    let reason = 'ended';
    stream.once('status', status => (reason = line(status)));
    for (const end of ['end', 'close']) {
      stream.once(end, () => {
        session.reason ??= reason;
        this.closeIfEmpty(session);
      });
    }
  }

  deliver(message) {
    const session = this.origin.get(message.ackId);
    this.origin.delete(message.ackId);
    this.held.set(message.ackId, {session, message});
    this.emit({
      event: 'delivered',
      session: session.name,
      message_id: message.id,
      ack_id: message.ackId,
      ordering_key: message.orderingKey ?? '',
      data: message.data.toString('base64'),
      attributes: message.attributes,
      delivery_attempt: message.deliveryAttempt,
      publish_time: message.publishTime.getFullTimeString(),
    });
    session.undelivered.delete(message.ackId);
    this.closeIfEmpty(session);
  }

  closeIfEmpty(session) {
    if (session.reason === undefined || session.undelivered.size || session.closed) return;
    session.closed = true;
    this.emit({event: 'closed', session: session.name, reason: session.reason});
  }

  answer({command, ack_id: ackId, seconds}) {
    const held = this.held.get(ackId);
    if (held === undefined) return;
    const {session, message} = held;
    if (command === 'modify_lease') return void message.modAck(seconds);
    this.held.delete(ackId);
    if (command === 'nack') return message.nack();
    if (command === 'drop') return this.client._inventory.remove(message); // private
    if (!this.client.isExactlyOnceDelivery) return message.ack(); // private
    message.ackWithResponse().then(
      () => this.emit({event: 'ack_confirmed', session: session.name, message_id: message.id}),
      () => {} // not confirmed
    );
  }

  break() {
    for (const {stream} of this.client._stream._streams) stream?.call?.cancelWithStatus(UNAVAILABLE, 'cut'); // private
  }

  /** Without refusing what is outstanding, as `close` would: its leases end. */
  async close() {
    this.client._inventory.clear(); // private
    await this.subscription.close().catch(() => {});
    this.end();
  }

  end(error) {
    if (this.over) return;
    this.emit({event: 'ended', ...(error && {code: CODES[error.code] ?? 'UNKNOWN', reason: line(error)})});
    this.over = true;
    subscribers.delete(this.name);
    this.pubsub.close().catch(() => {});
  }

  emit(event) {
    if (!this.over) emit({subscriber: this.name, ...event});
  }
}

function line(error) {
  const text = String(error.details || error.message || '').split(/\s+/).join(' ').slice(0, 300);
  return typeof error.code === 'number' ? `${text} (${CODES[error.code]})` : text;
}

const COMMANDS = {
  hello({endpoint, secure}) {
    options = {apiEndpoint: endpoint, emulatorMode: !secure};
    if (!secure) process.env.METADATA_SERVER_DETECTION ??= 'none'; // no credentials are looked for
    emit({event: 'ready', client: `@google-cloud/pubsub ${version}`});
  },
  open_publisher({publisher, topic}) {
    publishers.set(publisher, new Publisher(publisher, topic));
  },
  publish(command) {
    publishers.get(command.publisher).publish(command);
  },
  resume({publisher, ordering_key: key}) {
    publishers.get(publisher).topic.resumePublishing(key);
  },
  close_publisher({publisher}) {
    publishers.get(publisher)?.close();
    publishers.delete(publisher);
  },
  subscribe(command) {
    subscribers.set(command.subscriber, new Subscriber(command));
  },
  unsubscribe({subscriber}) {
    subscribers.get(subscriber)?.close();
  },
  break({subscriber}) {
    subscribers.get(subscriber)?.break();
  },
};
const answer = command => subscribers.get(command.subscriber)?.answer(command);
for (const name of ['ack', 'nack', 'drop', 'modify_lease']) COMMANDS[name] = answer;

readline
  .createInterface({input: process.stdin, crlfDelay: Infinity})
  .on('line', text => {
    const command = JSON.parse(text);
    COMMANDS[command.command](command);
  })
  .on('close', () => process.exit(0));
