// Messages with @google-cloud/pubsub: order, attributes, nacks, flow control, exactly-once, dead letters, filters, shutdown, trace context.

'use strict';

const assert = require('node:assert/strict');
const {test} = require('node:test');
const {Duration, PubSub, SubscriptionCloseBehaviors} = require('@google-cloud/pubsub');
const {trace} = require('@opentelemetry/api');
const {BasicTracerProvider} = require('@opentelemetry/sdk-trace-base');
const {create, publish, pubsub, receive, texts, uniqueName} = require('./setup');

test('messages of a key arrive in the order in which they were published', async () => {
  const {topic, subscription} = await create();
  const published = [...Array(100).keys()].map(n => topic.publishMessage({data: Buffer.from(String(n)), orderingKey: `k${n % 5}`}));
  assert.equal(new Set(await Promise.all(published)).size, 100);
  const messages = await receive(subscription, 100);
  for (let key = 0; key < 5; key++) {
    const ofKey = messages.filter(message => message.orderingKey === `k${key}`);
    assert.deepEqual(texts(ofKey), [...Array(20).keys()].map(n => String(5 * n + key)));
  }
});

test('attributes arrive', async () => {
  const {topic, subscription} = await create();
  const id = await topic.publishMessage({json: {order: 1}, attributes: {color: 'red', empty: ''}});
  const [message] = await receive(subscription, 1);
  assert.equal(message.id, id);
  assert.deepEqual(message.attributes, {color: 'red', empty: ''});
  assert.deepEqual(JSON.parse(message.data), {order: 1});
});

test('a nack redelivers all later messages', async () => {
  const {topic, subscription} = await create();
  await publish(topic, '1', '2', '3');
  let nacked = false;
  const messages = await receive(subscription, 5, message => {
    if (nacked || message.data.toString() !== '2') return message.ack();
    nacked = true;
    message.nack();
  });
  assert.deepEqual(texts(messages), ['1', '2', '3', '2', '3']);
});

test('a subscriber holds no more messages than its flow control allows', async () => {
  const {topic, subscription} = await create({enableMessageOrdering: false});
  await Promise.all([...Array(20).keys()].map(n => topic.publishMessage({data: Buffer.from(String(n))})));
  subscription.setOptions({flowControl: {maxMessages: 4, allowExcessMessages: false}});
  const held = [];
  const messages = await receive(subscription, 20, message => {
    held.push(message);
    assert.ok(held.length <= 4);
    if (held.length === 4) held.splice(0).forEach(one => one.ack());
  });
  assert.equal(new Set(texts(messages)).size, 20);
});

test('exactly-once delivery confirms acknowledgements', async () => {
  const {topic, subscription} = await create({enableExactlyOnceDelivery: true, ackDeadlineSeconds: 60});
  await publish(topic, '1', '2', '3');
  const answers = [];
  await receive(subscription, 3, async message => answers.push(await message.ackWithResponse()));
  assert.deepEqual(answers, Array(3).fill('SUCCESS'));
});

test('a message goes to the dead-letter topic after its last attempt', async () => {
  const dead = await create();
  const policy = {deadLetterTopic: dead.topic.name, maxDeliveryAttempts: 5};
  const {topic, subscription} = await create({deadLetterPolicy: policy});
  await publish(topic, 'poison');
  const attempts = [];
  subscription.on('message', message => {
    attempts.push(message.deliveryAttempt);
    message.nack();
  });
  const [letter] = await receive(dead.subscription, 1);
  await subscription.close();
  assert.deepEqual(attempts, [1, 2, 3, 4, 5]);
  assert.equal(letter.data.toString(), 'poison');
  assert.equal(letter.attributes.CloudPubSubDeadLetterSourceDeliveryCount, '5');
});

test('a filter selects messages by their attributes', async () => {
  const {topic, subscription} = await create({filter: 'attributes.color = "red"'});
  for (const color of ['blue', 'red']) await topic.publishMessage({data: Buffer.from(color), attributes: {color}});
  assert.deepEqual(texts(await receive(subscription, 1)), ['red']);
});

test('a close that waits acknowledges the message in progress and returns the others', async () => {
  const {topic, subscription} = await create({enableMessageOrdering: false});
  await Promise.all(['1', '2'].map(text => topic.publishMessage({data: Buffer.from(text)})));
  const waiting = pubsub.subscription(subscription.name, {
    flowControl: {maxMessages: 1, allowExcessMessages: false},
    closeOptions: {behavior: SubscriptionCloseBehaviors.WaitForProcessing, timeout: Duration.from({seconds: 30})},
  });
  const [closed, processed] = await new Promise((resolve, reject) => {
    waiting.on('error', reject);
    // Not `once`: the client closes a subscription when its last listener is removed.
    waiting.on('message', message => {
      const closing = waiting.close();
      setImmediate(() => message.ack());
      resolve([closing, message]);
    });
  });
  await closed;
  const [other] = await receive(subscription, 1);
  assert.deepEqual(texts([processed, other]).sort(), ['1', '2']);
});

test('the trace context of a publisher reaches the subscriber', async () => {
  trace.setGlobalTracerProvider(new BasicTracerProvider());
  const traced = new PubSub({projectId: 'test', enableOpenTelemetryTracing: true});
  const {topic, subscription} = await create();
  await traced.topic(topic.name).publishMessage({data: Buffer.from('1')});
  const [message] = await receive(subscription, 1);
  assert.match(message.attributes.googclient_traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  await traced.close();
});

test('a subscriber of a subscription that does not exist gets NOT_FOUND', async () => {
  const error = await new Promise(resolve => pubsub.subscription(uniqueName()).on('error', resolve).on('message', () => {}));
  assert.equal(error.code, 5);
});
