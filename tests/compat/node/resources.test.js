// Topics, subscriptions, snapshots, access policies and schemas with @google-cloud/pubsub.

'use strict';

const assert = require('node:assert/strict');
const {test} = require('node:test');
const {SchemaTypes, SchemaViews} = require('@google-cloud/pubsub');
const {create, publish, pubsub, receive, texts, uniqueName} = require('./setup');

const AVRO = JSON.stringify({type: 'record', name: 'State', fields: [{name: 'name', type: 'string'}]});
const names = async listing => (await listing)[0].map(one => one.name);

test('a topic is created, changed, listed and deleted', async () => {
  const [topic] = await pubsub.topic(uniqueName()).get({autoCreate: true});
  await topic.setMetadata({labels: {team: 'x'}});
  const [metadata] = await topic.getMetadata();
  assert.deepEqual([metadata.name, metadata.labels], [topic.name, {team: 'x'}]);
  assert.ok((await names(pubsub.getTopics())).includes(topic.name));
  await assert.rejects(pubsub.createTopic(topic.name), {code: 6});
  await topic.delete();
  assert.deepEqual(await topic.exists(), [false]);
});

test('topics are listed page by page and as a stream', async () => {
  for (let n = 0; n < 3; n++) await pubsub.createTopic(uniqueName());
  const [page, next] = await pubsub.getTopics({pageSize: 2, autoPaginate: false});
  assert.deepEqual([page.length, typeof next.pageToken], [2, 'string']);
  const streamed = await pubsub.getTopicsStream().toArray();
  assert.deepEqual(streamed.map(one => one.name), await names(pubsub.getTopics()));
});

test('a subscription is created, changed, listed, detached and deleted', async () => {
  const {topic, subscription} = await create({messageRetentionDuration: 1200, retainAckedMessages: true});
  await subscription.setMetadata({pushConfig: {pushEndpoint: ''}, ackDeadlineSeconds: 42});
  const [metadata] = await subscription.getMetadata();
  assert.deepEqual([metadata.ackDeadlineSeconds, metadata.retainAckedMessages, metadata.topic], [42, true, topic.name]);
  assert.equal(metadata.messageRetentionDuration.seconds, '1200');
  assert.deepEqual(await names(topic.getSubscriptions()), [subscription.name]);
  assert.ok((await names(pubsub.getSubscriptions())).includes(subscription.name));
  await pubsub.detachSubscription(subscription.name);
  assert.deepEqual(await subscription.detached(), [true]);
  await subscription.delete();
  assert.deepEqual(await subscription.exists(), [false]);
});

test('a seek to a snapshot and to a time', async () => {
  const {topic, subscription} = await create({retainAckedMessages: true});
  const [snapshot] = await subscription.createSnapshot(uniqueName());
  assert.ok((await names(pubsub.getSnapshots())).includes(snapshot.name));
  const before = new Date();
  await publish(topic, '1', '2');
  for (const target of [snapshot.name, before]) {
    await receive(subscription, 2);
    await subscription.seek(target);
    assert.deepEqual(texts(await receive(subscription, 2)), ['1', '2']);
    await subscription.seek(before);
  }
  await snapshot.delete();
});

test('a seek to the future acknowledges everything', async () => {
  const {topic, subscription} = await create();
  await publish(topic, '1');
  await subscription.seek(new Date(Date.now() + 60_000));
  await subscription.seek(new Date());
  await publish(topic, '2');
  assert.deepEqual(texts(await receive(subscription, 1)), ['2']);
});

test('access policies are written and read', async () => {
  const {topic} = await create();
  assert.deepEqual((await topic.iam.getPolicy())[0].bindings, []);
  await topic.iam.setPolicy({bindings: [{role: 'roles/pubsub.publisher', members: ['serviceAccount:a@b.iam.gserviceaccount.com']}]});
  assert.equal((await topic.iam.getPolicy())[0].bindings[0].role, 'roles/pubsub.publisher');
  assert.deepEqual((await topic.iam.testPermissions(['pubsub.topics.get']))[0], {'pubsub.topics.get': true});
});

test('a schema is created, validated, listed, applied and deleted', async () => {
  const id = uniqueName(), name = `projects/test/schemas/${id}`;
  const schema = await pubsub.createSchema(id, SchemaTypes.Avro, AVRO);
  assert.equal((await schema.get(SchemaViews.Full)).definition, AVRO);
  await pubsub.validateSchema({type: SchemaTypes.Avro, definition: AVRO});
  await assert.rejects(pubsub.validateSchema({type: SchemaTypes.Avro, definition: '{}'}), {code: 3});
  const listed = [];
  for await (const one of pubsub.listSchemas()) listed.push(one.name);
  assert.ok(listed.includes(name));
  const [topic] = await pubsub.createTopic({name: uniqueName(), schemaSettings: {schema: name, encoding: 'JSON'}});
  await topic.publishMessage({json: {name: 'Alaska'}});
  await assert.rejects(topic.publishMessage({json: {name: 1}}), {code: 3});
  await schema.delete();
});
